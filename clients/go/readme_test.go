package twoefay_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"twoefay/internal/realrelay"
)

// The code of README.md, as a newcomer copies it into an empty directory.

var readmeBlock = regexp.MustCompile("(?s)```go ([a-z]+\\.go)\n(.*?)```")

func TestFifteenLines(t *testing.T) {
	real := realrelay.Shared(t)
	readme, err := os.ReadFile("README.md")
	ok(t, err)
	directory := t.TempDir()
	for _, block := range readmeBlock.FindAllStringSubmatch(string(readme), -1) {
		name, code := block[1], block[2]
		if name == "shop.go" {
			requireFifteenLines(t, code)
		}
		code = strings.Replace(code, "https://localhost:8080", real.Origin, 1)
		ok(t, os.WriteFile(filepath.Join(directory, name), []byte(code), 0o600))
	}
	// The page says `cp -r`; a link to the tree is the same for Go, and faster.
	tree, err := os.Getwd()
	ok(t, err)
	ok(t, os.Symlink(tree, filepath.Join(directory, "twoefay")))
	commands := regexp.MustCompile(`(?m)^go mod [a-z]+ [^#\n]*`).FindAllString(string(readme), -1)
	if len(commands) != 2 {
		t.Fatal(commands)
	}
	program := filepath.Join(directory, "shop")
	for _, command := range append(commands, "gofmt -l main.go shop.go", "go vet .", "go build -o "+program+" .") {
		words := strings.Fields(command)
		run := exec.Command(words[0], words[1:]...)
		run.Dir, run.Env = directory, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
		output, err := run.CombinedOutput()
		if err != nil || words[0] == "gofmt" && len(output) > 0 {
			t.Fatal(command, err, string(output))
		}
	}
	tryProgram(t, real, program)
}

func requireFifteenLines(t *testing.T, code string) {
	t.Helper()
	_, functions, _ := strings.Cut(code, "\n)\n")
	count := 0
	for _, line := range strings.Split(functions, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			count++
		}
	}
	if count > 15 {
		t.Error(count, "lines")
	}
}

// tryProgram runs the program in the directory of the relay's files.
func tryProgram(t *testing.T, real *realrelay.Relay, program string) {
	t.Helper()
	shop := exec.Command(program)
	shop.Dir = real.Directory
	keyboard, err := shop.StdinPipe()
	ok(t, err)
	output, err := shop.StdoutPipe()
	ok(t, err)
	shop.Stderr = os.Stderr
	ok(t, shop.Start())
	lines := bufio.NewScanner(output)
	find := func(pattern string) string {
		for lines.Scan() {
			if found := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); found != nil {
				return found[1]
			}
		}
		t.Fatal("the program did not say ", pattern)
		return ""
	}
	real.Enrol(t, find(`^twoefay phone enrol '(.*)'$`), "newcomer")
	fmt.Fprintln(keyboard)
	number := find(`^Enter this number on your phone: ([0-9]+)$`)
	if status := real.ApproveNext(t, number, "newcomer"); status != 0 {
		t.Error(status)
	}
	if approved := find(`^approved: (.*)$`); approved != "true <nil>" {
		t.Error(approved)
	}
	ok(t, shop.Wait())
}
