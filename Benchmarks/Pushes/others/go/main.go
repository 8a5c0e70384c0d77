// main PORT AUTHORITY COUNT UNDERWAY PAYLOAD: sends the same pushes with Go's net/http over HTTP/2,
// on one connection.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func processor() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e3
}

func main() {
	authority, err := os.ReadFile(os.Args[2])
	check(err)
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	underway, err := strconv.Atoi(os.Args[4])
	check(err)
	payload, err := os.ReadFile(os.Args[5])
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
		},
		Timeout: 30 * time.Second,
	}
	url := "https://127.0.0.1:" + os.Args[1] + "/3/device/" + strings.Repeat("a1", 32)
	authorization := "bearer " + strings.Repeat("x", 190)
	expiration := strconv.FormatInt(time.Now().Unix()+300, 10)
	send := func(number int) {
		request, err := http.NewRequest("POST", url, bytes.NewReader(payload))
		check(err)
		request.Header.Set("apns-topic", "com.example.twoefay")
		request.Header.Set("apns-push-type", "alert")
		request.Header.Set("apns-priority", "10")
		request.Header.Set("authorization", authorization)
		request.Header.Set("apns-id", fmt.Sprintf("01234567-89ab-cdef-0123-%012x", number))
		request.Header.Set("apns-expiration", expiration)
		request.Header.Set("apns-collapse-id", "00112233445566778899aabbccddeeff")
		response, err := client.Do(request)
		check(err)
		_, err = io.Copy(io.Discard, response.Body)
		check(err)
		check(response.Body.Close())
		if response.StatusCode != 200 || response.ProtoMajor != 2 {
			check(fmt.Errorf("status %d over HTTP/%d", response.StatusCode, response.ProtoMajor))
		}
	}
	send(count)
	took := make([]float64, count)
	numbers := make(chan int, underway)
	beginning, used := time.Now(), processor()
	var workers sync.WaitGroup
	for worker := 0; worker < underway; worker++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for number := range numbers {
				start := time.Now()
				send(number)
				took[number] = float64(time.Since(start).Nanoseconds()) / 1e3
			}
		}()
	}
	for number := 0; number < count; number++ {
		numbers <- number
	}
	close(numbers)
	workers.Wait()
	seconds := time.Since(beginning).Seconds()
	used = processor() - used
	sort.Float64s(took)
	fmt.Printf("%.1f %.1f %.1f %.1f\n", float64(count)/seconds, took[count/2], took[count*99/100], used/float64(count))
}
