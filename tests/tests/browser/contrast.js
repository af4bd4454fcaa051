// The least contrast between a text and its background.
const parse = (colour) => colour.match(/[\d.]+/g).slice(0, 4).map(Number);
const light = (rgb) => {
  const [r, g, b] = rgb.map((it) => (it /= 255) <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let it = element; it; it = it.parentElement) {
    const colour = parse(getComputedStyle(it).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour.slice(0, 3);
  }
  return [255, 255, 255];
};
let least = 21;
for (const element of document.querySelectorAll("body *")) {
  const shown = [...element.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
  if (!shown || !element.checkVisibility() || element.disabled) continue;
  const [a, b] = [light(parse(getComputedStyle(element).color).slice(0, 3)), light(behind(element))];
  least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
}
return least;
