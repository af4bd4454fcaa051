package main

import (
	"encoding/json"
	"hash/crc32"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Widget is the object of the operator.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec is what users edit; only the trouble with large objects has a blob.
type WidgetSpec struct {
	Edit int64  `json:"edit"`
	Size int    `json:"size"`
	Blob string `json:"blob,omitempty"`
}

// WidgetList is a list of objects.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject makes a Widget an object.
func (w *Widget) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// DeepCopyObject makes a WidgetList an object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Widget, len(l.Items))
	for at := range l.Items {
		copied.Items[at] = *l.Items[at].DeepCopyObject().(*Widget)
	}
	return &copied
}

// stateOf is what users edit.
func stateOf(widget *Widget) map[string]any {
	metadata := map[string]any{}
	if widget.Labels != nil {
		metadata["labels"] = widget.Labels
	}
	if widget.Annotations != nil {
		metadata["annotations"] = widget.Annotations
	}
	return map[string]any{"metadata": metadata, "spec": widget.Spec}
}

// numberOf depends on a handler, an object and its state only.
func numberOf(handler string, widget *Widget) uint32 {
	text, err := json.Marshal([]any{handler, widget.UID, stateOf(widget)})
	check(err)
	return crc32.ChecksumIEEE(text)
}
