// Checks alert rules as `promtool check rules` does, with the same parser.
package main

import (
	"fmt"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

func main() {
	_, errs := rulefmt.ParseFile(os.Args[1], false, model.UTF8Validation)
	for _, err := range errs {
		fmt.Println(err)
	}
	if len(errs) > 0 {
		os.Exit(1)
	}
}
