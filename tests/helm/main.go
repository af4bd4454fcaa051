// The helm of the tests, from its own module.
package main

import (
	"errors"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

func main() {
	kube.ManagedFieldsManager = "helm"
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		os.Exit(1)
	}
	if err := root.Execute(); err != nil {
		var failed cmd.CommandError
		if errors.As(err, &failed) {
			os.Exit(failed.ExitCode)
		}
		os.Exit(1)
	}
}
