// A website's conversation with the relay, by net/http: conversation ORIGIN DIRECTORY TWOEFAY
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

type object = map[string]interface{}

var client *http.Client

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func call(method, path string, body object, fields ...string) (int, object) {
	var text bytes.Buffer
	if body != nil {
		must(json.NewEncoder(&text).Encode(body))
	}
	request, err := http.NewRequest(method, os.Args[1]+path, &text)
	must(err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, field := range fields {
		request.Header.Set("Prefer", field)
	}
	answer, err := client.Do(request)
	must(err)
	defer answer.Body.Close()
	if answer.Proto != "HTTP/1.1" {
		panic(answer.Proto)
	}
	result := object{}
	if answer.StatusCode != http.StatusNoContent {
		must(json.NewDecoder(answer.Body).Decode(&result))
	}
	return answer.StatusCode, result
}

func phone(words ...string) *exec.Cmd {
	command := exec.Command(os.Args[3], append(append([]string{"phone"}, words...), "--keys", os.Args[2]+"/phone")...)
	must(command.Start())
	return command
}

func main() {
	directory := os.Args[2]
	authority, err := os.ReadFile(directory + "/relay/ca.pem")
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	pair, err := tls.LoadX509KeyPair(directory+"/shop.pem", directory+"/shop.key")
	must(err)
	// A transport with TLS settings of its own does not offer HTTP/2.
	settings := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	client = &http.Client{Transport: &http.Transport{TLSClientConfig: settings}}

	status, user := call("POST", "/register", object{"username": "ada"})
	fmt.Println(status)
	must(phone("enrol", user["activation"].(object)["uri"].(string)).Wait())
	status, user = call("GET", "/user/ada", nil)
	fmt.Println(status, user["state"], len(user["devices"].([]interface{})))
	status, login := call("POST", "/login", object{"username": "ada", "request": "r-1"})
	fmt.Println(status)
	challenge := object{"challenge": login["challenge"]}
	status, answer := call("POST", "/auth", challenge, "wait=1")
	fmt.Println(status, answer["login"])
	approval := phone("approve", "--challenge", login["challenge"].(string), "--number", login["number"].(string))
	status, answer = call("POST", "/auth", challenge, "wait=60")
	fmt.Println(status, answer["login"], answer["proof"], strings.Count(answer["receipt"].(string), "."))
	must(approval.Wait())
	status, answer = call("GET", "/webhook/secrets", nil)
	fmt.Println(status, len(answer["secrets"].([]interface{})))
	status, answer = call("GET", "/user/nobody", nil)
	fmt.Println(status, answer["code"])
	status, _ = call("DELETE", "/user/ada", nil)
	fmt.Println(status)
}
