package sqltest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Servers of PostgreSQL and MariaDB for the tests: throwaway ones, over a socket alone.

// server is a directory of its own, in which programs run.
type server struct {
	t          *testing.T
	at         string
	credential *syscall.Credential
}

// newServer makes the directory. A database server refuses to run as root.
func newServer(t *testing.T) server {
	t.Helper()
	at, err := os.MkdirTemp("", "twoefay-") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(at) })
	made := server{t: t, at: at}
	if os.Geteuid() != 0 {
		return made
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	id, _ := strconv.Atoi(nobody.Uid)
	group, _ := strconv.Atoi(nobody.Gid)
	if err := os.Chown(at, id, group); err != nil {
		t.Fatal(err)
	}
	made.credential = &syscall.Credential{Uid: uint32(id), Gid: uint32(group)}
	return made
}

func (s server) file(name string) string { return filepath.Join(s.at, name) }

func (s server) command(program string, words ...string) *exec.Cmd {
	command := exec.Command(program, words...)
	command.Dir = s.at
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential}
	return command
}

// run runs a program to its end. Its output goes to a file, since a server that it leaves behind
// would hold a pipe open.
func (s server) run(program string, words ...string) {
	s.t.Helper()
	log, err := os.Create(s.file("log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	command := s.command(program, words...)
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		text, _ := os.ReadFile(s.file("log"))
		s.t.Fatalf("%s: %v: %s", program, err, text)
	}
}

func program(t *testing.T, name, database string) string {
	t.Helper()
	places, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	for _, place := range append(places, name, "/usr/sbin/"+name) {
		if found, err := exec.LookPath(place); err == nil {
			return found
		}
	}
	t.Skipf("no %s: the store in %s is not tested", name, database)
	return ""
}

// postgreSQL starts a server, and returns a connection string.
func postgreSQL(t *testing.T) string {
	control, initdb := program(t, "pg_ctl", "PostgreSQL"), program(t, "initdb", "PostgreSQL")
	s := newServer(t)
	data := s.file("data")
	s.run(initdb, "-D", data, "-U", "twoefay", "-A", "trust", "-N")
	s.run(control, "start", "-w", "-D", data, "-o", fmt.Sprintf("-k %s -h '' -F", s.at))
	t.Cleanup(func() { s.run(control, "stop", "-m", "immediate", "-D", data) })
	return fmt.Sprintf("host=%s user=twoefay dbname=postgres sslmode=disable", s.at)
}

// mariaDB starts a server, and returns a connection string when the server says that it is ready.
func mariaDB(t *testing.T) string {
	daemon, install := program(t, "mariadbd", "MariaDB"), program(t, "mariadb-install-db", "MariaDB")
	s := newServer(t)
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.file("told"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	if err := told.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil { // if it fails to start
		t.Fatal(err)
	}
	if err := os.Chmod(s.file("told"), 0o666); err != nil {
		t.Fatal(err)
	}
	common := []string{"--no-defaults", "--datadir=" + s.file("data"), "--tmpdir=" + s.at}
	s.run(install, append(common, "--auth-root-authentication-method=normal")...)
	command := s.command(daemon, append(common, "--socket="+s.file("socket"), "--skip-networking")...)
	command.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.file("told"))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for said := make([]byte, 4096); ; {
		count, err := told.Read(said)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(said[:count], []byte("READY=1")) {
			return fmt.Sprintf("root@unix(%s)/test", s.file("socket"))
		}
	}
}
