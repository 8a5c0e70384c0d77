// Package chromium drives a real browser for tests, by its debugging protocol over two pipes.
package chromium

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// Browser is a Chromium without a window, with one page and an empty profile.
type Browser struct {
	// Errors has what the page's console said, such as breaches of its policy.
	Errors []string

	t       *testing.T
	into    *os.File
	from    *bufio.Reader
	last    int
	session string
	loads   int
}

type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// Start starts a browser, which ends with the test.
func Start(t *testing.T) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: the page is not tested in a browser")
	}
	commandsOut, commandsIn := pipe(t)
	answersOut, answersIn := pipe(t)
	// The certificate of the test's server is self-signed. A sandbox does not run as root.
	command := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--ignore-certificate-errors", "--remote-debugging-pipe",
		"--user-data-dir="+t.TempDir(), "about:blank")
	command.ExtraFiles = []*os.File{commandsOut, answersIn} // 3 and 4
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	commandsOut.Close()
	answersIn.Close()
	b := &Browser{t: t, into: commandsIn, from: bufio.NewReader(answersOut)}
	t.Cleanup(func() {
		b.session = ""
		b.send("Browser.close", map[string]any{})
		_ = command.Wait()
		commandsIn.Close()
		answersOut.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", map[string]any{}, nil)
	}
	return b
}

func pipe(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return read, write
}

func (b *Browser) send(method string, params any) int {
	b.last++
	sent := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		sent["sessionId"] = b.session
	}
	data, err := json.Marshal(sent)
	if err == nil {
		_, err = b.into.Write(append(data, 0))
	}
	if err != nil {
		b.t.Error(err)
	}
	return b.last
}

// read returns the next message, and notes loads and errors of the page.
func (b *Browser) read() message {
	b.t.Helper()
	data, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatal("the browser has ended: ", err)
	}
	var read message
	if err := json.Unmarshal(data[:len(data)-1], &read); err != nil {
		b.t.Fatal(err)
	}
	switch read.Method {
	case "Page.loadEventFired":
		b.loads++
	case "Log.entryAdded", "Runtime.exceptionThrown":
		b.Errors = append(b.Errors, string(read.Params))
	}
	return read
}

func (b *Browser) call(method string, params, into any) {
	b.t.Helper()
	id := b.send(method, params)
	for {
		answer := b.read()
		if answer.ID != id {
			continue
		}
		if answer.Error != nil {
			b.t.Fatal(method, ": ", answer.Error.Message)
		}
		if into != nil {
			if err := json.Unmarshal(answer.Result, into); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// Load waits until the page that follows the work has loaded.
func (b *Browser) Load(work func()) {
	b.t.Helper()
	before := b.loads
	work()
	for b.loads == before {
		b.read()
	}
}

// Go opens an address.
func (b *Browser) Go(address string) {
	b.t.Helper()
	b.Load(func() { b.call("Page.navigate", map[string]any{"url": address}, nil) })
}

// Run runs a script in the page, and returns its result as a text.
func (b *Browser) Run(script string) string {
	b.t.Helper()
	var found struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &found)
	if found.ExceptionDetails != nil {
		b.t.Fatal(string(found.ExceptionDetails))
	}
	text, _ := found.Result.Value.(string)
	return text
}

// Picture writes a picture of the page as PNG.
func (b *Browser) Picture(file string) {
	b.t.Helper()
	var picture struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
