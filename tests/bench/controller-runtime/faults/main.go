// The operator under trouble, as it is written for controller-runtime: one function for each object,
// with children and a finalizer, and the journal of the other operators of kopf-faults.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// The suite recognizes objects that are held by this finalizer, and children by this label.
	finalizer  = "kopf.zalando.org/KopfFinalizerMarker"
	ownerLabel = "kopf-gen.dev/owner-uid"

	// The pause before a call that was asked for.
	notYet = 300 * time.Millisecond
)

type reconciler struct {
	client.Client
	version schema.GroupVersion
	journal *journal

	// For each handler and object the last state for which it has asked to be called again.
	lock  sync.Mutex
	asked map[string]uint32
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	held := widget.DeepCopyObject().(*Widget)
	if widget.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(widget, finalizer) {
			if err := r.patchFinalizers(ctx, widget, held); err != nil {
				return ctrl.Result{}, err
			}
		}
		return r.logged(ctx, "reconciled", widget, r.apply)
	}
	if !controllerutil.ContainsFinalizer(widget, finalizer) {
		return ctrl.Result{}, nil
	}
	result, err := r.logged(ctx, "released", widget, r.cleanUp)
	if err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	controllerutil.RemoveFinalizer(widget, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.patchFinalizers(ctx, widget, held))
}

// patchFinalizers patches and does not update, because the suite loses the answers to patches.
func (r *reconciler) patchFinalizers(ctx context.Context, widget, before *Widget) error {
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return r.Patch(ctx, widget, locked)
}

// logged writes the begin and the end of a call to the journal.
func (r *reconciler) logged(
	ctx context.Context,
	handler string,
	widget *Widget,
	work func(context.Context, *Widget) (ctrl.Result, error),
) (ctrl.Result, error) {
	call := r.journal.begin(handler, widget)
	result, err := work(ctx, widget)
	if err != nil || result.RequeueAfter > 0 {
		call.write("retry")
	} else {
		call.write("success")
	}
	return result, err
}

// apply applies the children of the state, and deletes all others.
func (r *reconciler) apply(ctx context.Context, widget *Widget) (ctrl.Result, error) {
	again := r.asksAgain("reconciled", widget)
	var wanted []string
	for number := range widget.Spec.Size {
		// The attempt that fails has applied a part of them, and must not delete the others.
		if number > 0 && again {
			break
		}
		child := r.child(widget, number)
		if err := r.Apply(ctx, child, client.FieldOwner("faults-controller"), client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
		wanted = append(wanted, *child.Name)
	}
	work(widget)
	if again {
		return ctrl.Result{RequeueAfter: notYet}, nil
	}
	var children corev1.ConfigMapList
	own := client.MatchingLabels{ownerLabel: string(widget.UID)}
	if err := r.List(ctx, &children, client.InNamespace(widget.Namespace), own); err != nil {
		return ctrl.Result{}, err
	}
	for _, child := range children.Items {
		if slices.Contains(wanted, child.Name) {
			continue
		}
		if err := r.Delete(ctx, &child); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func (r *reconciler) cleanUp(_ context.Context, widget *Widget) (ctrl.Result, error) {
	work(widget)
	if r.asksAgain("released", widget) {
		return ctrl.Result{RequeueAfter: notYet}, nil
	}
	return ctrl.Result{}, nil
}

func (r *reconciler) child(owner *Widget, number int) *corev1apply.ConfigMapApplyConfiguration {
	name := fmt.Sprintf("%s-%.8s-%d", owner.Name, owner.UID, number)
	return corev1apply.ConfigMap(name, owner.Namespace).
		WithLabels(map[string]string{ownerLabel: string(owner.UID)}).
		WithData(map[string]string{"edit": strconv.FormatInt(owner.Spec.Edit, 10)}).
		WithOwnerReferences(metav1apply.OwnerReference().
			WithAPIVersion(r.version.String()).
			WithKind("Widget").
			WithName(owner.Name).
			WithUID(owner.UID).
			WithController(true))
}

func work(widget *Widget) {
	time.Sleep(time.Duration(1+numberOf("work", widget)%40) * time.Millisecond)
}

// asksAgain says whether this call asks to be called again: for a quarter of the states, the first
// call does.
func (r *reconciler) asksAgain(handler string, widget *Widget) bool {
	number := numberOf(handler, widget)
	if (number>>8)%4 != 0 {
		return false
	}
	key := handler + " " + string(widget.UID)
	r.lock.Lock()
	defer r.lock.Unlock()
	known, asked := r.asked[key]
	r.asked[key] = number
	return !asked || known != number
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	journal, err := openJournal(os.Getenv("FAULTS_JOURNAL"))
	check(err)
	go journal.probe()
	version := schema.GroupVersion{Group: os.Getenv("FAULTS_GROUP"), Version: "v1"}
	scheme := runtime.NewScheme()
	check(corev1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(version.WithKind("Widget"), &Widget{})
	scheme.AddKnownTypeWithName(version.WithKind("WidgetList"), &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	owned, err := labels.NewRequirement(ownerLabel, selection.Exists, nil)
	check(err)
	config := ctrl.GetConfigOrDie()
	// The client itself does not slow down its requests.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.NewSelector().Add(*owned)},
			},
			DefaultTransform: cache.TransformStripManagedFields(),
		},
	})
	check(err)
	check(ctrl.NewControllerManagedBy(manager).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 16}).
		Complete(&reconciler{
			Client:  manager.GetClient(),
			version: version,
			journal: journal,
			asked:   map[string]uint32{},
		}))
	check(manager.Start(ctrl.SetupSignalHandler()))
}
