// A controller of controller-runtime with one ConfigMap for each Widget, for the benchmark of children.
package main

import (
	"context"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Widget is the owner.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec has the value that the child repeats.
type WidgetSpec struct {
	Size int `json:"size"`
}

// WidgetList is a list of owners.
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

var childLabels = map[string]string{"bench": "child"}

type reconciler struct {
	client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: widget.Name, Namespace: widget.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Labels = childLabels
		child.Data = map[string]string{"size": strconv.Itoa(widget.Spec.Size)}
		return controllerutil.SetControllerReference(widget, child, r.Scheme())
	})
	return ctrl.Result{}, err
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	version := schema.GroupVersion{Group: os.Getenv("GROUP"), Version: "v1"}
	scheme := runtime.NewScheme()
	check(corev1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(version.WithKind("Widget"), &Widget{})
	scheme.AddKnownTypeWithName(version.WithKind("WidgetList"), &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	config := ctrl.GetConfigOrDie()
	// The client itself does not slow down its requests.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{os.Getenv("NAMESPACE"): {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(childLabels)},
			},
			DefaultTransform: cache.TransformStripManagedFields(),
		},
	})
	check(err)
	check(ctrl.NewControllerManagedBy(manager).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 16}).
		Complete(&reconciler{manager.GetClient()}))
	check(manager.Start(ctrl.SetupSignalHandler()))
}
