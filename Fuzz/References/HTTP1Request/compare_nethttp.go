// Reads the requests that the relay's parser has accepted with Go's net/http, and compares, as
// compare_h11.py does with h11. The order of fields with different names is not compared: Go does
// not keep it.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strings"
)

// The fields that concern the connection, as in compare_h11.py. Go has taken the others out itself.
var connection = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true, "expect": true,
}

// read returns the next request in the form of the relay.
func read(reader *bufio.Reader) (text string, closes bool, err error) {
	request, err := http.ReadRequest(reader)
	if err != nil {
		return "", false, err
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return "", false, err
	}
	if len(request.Trailer) > 0 {
		return "", false, fmt.Errorf("trailers: %v", request.Trailer)
	}
	state := "open"
	if request.Close {
		state = "close"
	}
	parts := []string{}
	for _, part := range []string{request.Method, request.RequestURI, request.Host, string(body)} {
		parts = append(parts, hex.EncodeToString([]byte(part)))
	}
	fields := []string{}
	for name, values := range request.Header {
		for _, value := range values {
			if name := strings.ToLower(name); !connection[name] {
				fields = append(fields, hex.EncodeToString([]byte(name))+":"+hex.EncodeToString([]byte(value)))
			}
		}
	}
	return normal(append(append(parts, state), fields...)), request.Close, nil
}

// normal sorts the fields, and ignores whether the connection stays open.
func normal(parts []string) string {
	fields := parts[5:]
	sort.Strings(fields)
	return strings.Join(append(append([]string{}, parts[:4]...), fields...), ",")
}

func difference(data []byte, ours []string) error {
	reader := bufio.NewReader(bytes.NewReader(data))
	for _, one := range ours {
		parts := strings.Split(one, ",")
		theirs, closes, err := read(reader)
		if err != nil {
			// The relay leaves escapes such as %zz to its routes.
			if strings.Contains(err.Error(), "invalid URL escape") {
				return nil
			}
			return fmt.Errorf("net/http refuses it: %w", err)
		}
		if theirs != normal(parts) {
			return fmt.Errorf("net/http reads %s, the relay %s", theirs, one)
		}
		if closes && parts[4] == "open" {
			return fmt.Errorf("net/http ends the connection, the relay does not")
		}
	}
	return nil
}

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	compared, differences := 0, 0
	for lines.Scan() {
		input, text, _ := strings.Cut(lines.Text(), "\t")
		data, err := hex.DecodeString(input)
		if err != nil {
			panic(err)
		}
		ours := strings.Split(text, ";")
		compared += len(ours)
		if err := difference(data, ours); err != nil {
			differences++
			fmt.Printf("%q: %v\n", data, err)
		}
	}
	fmt.Printf("net/http of %s: %d requests compared, %d differences\n", runtime.Version(), compared, differences)
	if differences > 0 || compared == 0 {
		os.Exit(1)
	}
}
