// The linter of GitHub workflows for the tests, from its own module.
package main

import (
	"os"

	"github.com/rhysd/actionlint"
)

func main() {
	command := actionlint.Command{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(command.Main(os.Args))
}
