// Package realrelay starts a real relay and a real phone for tests: the programs twoefayd and
// twoefay, over loopback.
package realrelay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"twoefay"
)

// Relay is a relay with the website `shop`, in a directory of its own.
type Relay struct {
	Directory, Origin string

	programs string
	daemon   *exec.Cmd
	log      sync.WaitGroup
}

var shared struct {
	once  sync.Once
	relay *Relay
	err   error
}

// Main runs the tests of a package, and ends the relay that they have shared. Use it in TestMain.
func Main(m *testing.M) int {
	defer func() {
		if shared.relay != nil {
			shared.relay.Stop()
			os.RemoveAll(shared.relay.Directory)
		}
	}()
	return m.Run()
}

// Shared returns one relay for all tests of a package. Each test has users of its own.
func Shared(t *testing.T) *Relay {
	t.Helper()
	programs := os.Getenv("TWOEFAY_PROGRAMS")
	for _, name := range []string{"twoefayd", "twoefay"} {
		if _, err := os.Stat(filepath.Join(programs, name)); programs == "" || err != nil {
			t.Skipf("no %s in %q (TWOEFAY_PROGRAMS): no real relay is tested", name, programs)
		}
	}
	shared.once.Do(func() { shared.relay, shared.err = start(programs) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.relay
}

func start(programs string) (*Relay, error) {
	programs, err := filepath.Abs(programs)
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "twoefay-go-")
	if err != nil {
		return nil, err
	}
	relay := &Relay{Directory: directory, programs: programs}
	// twoefayd has no port 0: its origin must be known before.
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := probe.Addr().(*net.TCPAddr)
	probe.Close()
	relay.Origin = fmt.Sprintf("https://localhost:%d", address.Port)
	if _, err := relay.run("init", "relay", "--listen", address.String()); err != nil {
		return nil, err
	}
	if err := relay.allowLocalWebhooks(); err != nil {
		return nil, err
	}
	if _, err := relay.operate("website", "add", "shop"); err != nil {
		return nil, err
	}
	return relay, relay.begin()
}

func (r *Relay) allowLocalWebhooks() error {
	file := filepath.Join(r.Directory, "relay", "twoefay.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	allowed := bytes.Replace(text, []byte("\nwebhooks:\n"), []byte("\nwebhooks:\n  allow: \"127.0.0.0/8, ::1\"\n"), 1)
	return os.WriteFile(file, allowed, 0o600)
}

// Start starts the relay again.
func (r *Relay) Start(t *testing.T) {
	t.Helper()
	if err := r.begin(); err != nil {
		t.Fatal(err)
	}
}

// begin returns when the relay says in its log that it listens.
func (r *Relay) begin() error {
	daemon := exec.Command(filepath.Join(r.programs, "twoefayd"), "--config", "relay/twoefay.yaml")
	daemon.Dir = r.Directory
	log, err := daemon.StderrPipe()
	if err != nil {
		return err
	}
	if err := daemon.Start(); err != nil {
		return err
	}
	r.daemon = daemon
	reader, seen := bufio.NewReader(log), ""
	for {
		line, err := reader.ReadString('\n')
		seen += line
		if err != nil {
			return errors.New("twoefayd did not start: " + seen)
		}
		if strings.Contains(line, "event=daemon.started") {
			break
		}
	}
	r.log.Add(1)
	go func() { // so that the pipe never fills up
		defer r.log.Done()
		_, _ = io.Copy(io.Discard, reader)
	}()
	return nil
}

// Stop ends the relay.
func (r *Relay) Stop() {
	if r.daemon == nil {
		return
	}
	_ = r.daemon.Process.Signal(syscall.SIGTERM)
	r.log.Wait()
	_ = r.daemon.Wait()
	r.daemon = nil
}

func (r *Relay) command(words ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(r.programs, "twoefay"), words...)
	command.Dir = r.Directory
	return command
}

func (r *Relay) run(words ...string) (string, error) {
	output, err := r.command(words...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("twoefay %s: %w: %s", strings.Join(words, " "), err, output)
	}
	return string(output), nil
}

func (r *Relay) operate(words ...string) (string, error) {
	return r.run(append([]string{"--config", "relay/twoefay.yaml"}, words...)...)
}

// Operate runs a command of the operator.
func (r *Relay) Operate(t *testing.T, words ...string) {
	t.Helper()
	if _, err := r.operate(words...); err != nil {
		t.Fatal(err)
	}
}

// Settings returns those of a client.
func (r *Relay) Settings(store twoefay.Store, website string) twoefay.Settings {
	file := func(name string) string { return filepath.Join(r.Directory, name) }
	return twoefay.Settings{
		Origin: r.Origin, CA: file("relay/ca.pem"), Certificate: file(website + ".pem"), Key: file(website + ".key"),
		Store: store,
	}
}

// Client makes a client of the website `shop`.
func (r *Relay) Client(t *testing.T, store twoefay.Store) *twoefay.Relay {
	t.Helper()
	client, err := twoefay.New(r.Settings(store, "shop"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Enrol lets a phone read a code.
func (r *Relay) Enrol(t *testing.T, uri, phone string) {
	t.Helper()
	if _, err := r.run("phone", "enrol", uri, "--keys", phone, "--json"); err != nil {
		t.Fatal(err)
	}
}

// Answer lets a phone approve, deny or report a login, and returns its exit status.
func (r *Relay) Answer(t *testing.T, what, challenge, number, phone string) int {
	t.Helper()
	words := []string{"phone", what, "--keys", phone, "--challenge", challenge}
	if what == "approve" && number != "" {
		words = append(words, "--number", number)
	}
	return r.status(t, words...)
}

// ApproveNext lets a phone wait for a login and approve it, whatever its challenge is.
func (r *Relay) ApproveNext(t *testing.T, number, phone string) int {
	t.Helper()
	return r.status(t, "phone", "watch", "--keys", phone, "--auto", "approve", "--number", number, "--once")
}

func (r *Relay) status(t *testing.T, words ...string) int {
	t.Helper()
	output, err := r.command(words...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Error(err, string(output))
		return -1
	}
	return 0
}

// Approve lets a phone approve, and requires that it counts.
func (r *Relay) Approve(t *testing.T, challenge, number, phone string) {
	t.Helper()
	if status := r.Answer(t, "approve", challenge, number, phone); status != 0 {
		t.Error("the approval does not count:", status)
	}
}
