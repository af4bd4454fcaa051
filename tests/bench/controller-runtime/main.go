// The webhook server of controller-runtime with the check of the benchmark: size is at most 100.
package main

import (
	"context"
	"net/http"
	"os"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Widget is the reviewed kind.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec has the checked field, and a list that makes the object larger.
type WidgetSpec struct {
	Size  int      `json:"size"`
	Items []string `json:"items,omitempty"`
}

// DeepCopyObject makes a Widget an object.
func (w *Widget) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Items = append([]string(nil), w.Spec.Items...)
	return &copied
}

type check struct {
	decoder admission.Decoder
}

func (c *check) Handle(_ context.Context, request admission.Request) admission.Response {
	widget := &Widget{}
	if err := c.decoder.Decode(request, widget); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if widget.Spec.Size > 100 {
		return admission.Denied("too large")
	}
	return admission.Allowed("")
}

func main() {
	ctrl.SetLogger(zap.New())
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		panic(err)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: os.Getenv("GROUP"), Version: "v1", Kind: "Widget"}, &Widget{})
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Getenv("CERTS")})
	server.Register("/validate", &admission.Webhook{Handler: &check{decoder: admission.NewDecoder(scheme)}})
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
