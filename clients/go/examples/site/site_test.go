package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"twoefay"
	"twoefay/internal/chromium"
	"twoefay/internal/realrelay"
)

func TestMain(m *testing.M) { os.Exit(realrelay.Main(m)) }

// world is the site in a server, with a real relay.
type world struct {
	t      *testing.T
	real   *realrelay.Relay
	store  *twoefay.MemoryStore
	server *httptest.Server
}

func newWorld(t *testing.T, passwordsOfTest map[string]string) *world {
	t.Helper()
	real, store := realrelay.Shared(t), twoefay.NewMemoryStore()
	passwords = passwordsOfTest
	handler, err := newSite(real.Client(t, store), store, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return &world{t, real, store, server}
}

// browser sends a browser's requests, and keeps its cookies. It follows no redirects.
type browser struct {
	t      *testing.T
	client http.Client
	at     string
}

type page struct {
	status int
	header http.Header
	body   string
}

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	client := http.Client{Transport: w.server.Client().Transport, Jar: jar}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{w.t, client, w.server.URL}
}

func (b *browser) send(method, path string, form url.Values) page {
	b.t.Helper()
	request, err := http.NewRequest(method, b.at+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("User-Agent", "Evil\u200b browser/1.0")
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{response.StatusCode, response.Header, string(body)}
}

func (b *browser) get(path string) page { return b.send(http.MethodGet, path, nil) }

func (b *browser) post(path string, form url.Values) page { return b.send(http.MethodPost, path, form) }

// cookie returns the pending login, which the visitor may read.
func (b *browser) login() twoefay.Login {
	b.t.Helper()
	address, err := url.Parse(b.at)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, cookie := range b.client.Jar.Cookies(address) {
		if cookie.Name == "__Host-twoefay" {
			return loginOf(b.t, cookie.Value)
		}
	}
	b.t.Fatal("no login")
	return twoefay.Login{}
}

func loginOf(t *testing.T, cookie string) twoefay.Login {
	t.Helper()
	body, _, _ := strings.Cut(cookie, ".")
	data, err := base64.RawURLEncoding.DecodeString(body)
	var pending struct{ Login twoefay.Login }
	if err != nil || json.Unmarshal(data, &pending) != nil {
		t.Fatal("the cookie is none")
	}
	return pending.Login
}

func match(t *testing.T, pattern, text string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in %s", pattern, text)
	}
	return html.UnescapeString(found[1])
}

func require(t *testing.T, holds bool, what ...any) {
	t.Helper()
	if !holds {
		t.Fatal(what...)
	}
}

// loadsNothing checks that a page needs nothing from elsewhere, and has no script or style but
// those that its policy allows.
func loadsNothing(t *testing.T, shown page) {
	t.Helper()
	for _, pattern := range []string{` src=`, ` srcset=`, `<link`, `@import`, `url\(`, ` on[a-z]+=`, ` style=`} {
		if regexp.MustCompile(pattern).MatchString(shown.body) {
			t.Error("the page has", pattern)
		}
	}
	policy := shown.header.Get("Content-Security-Policy")
	nonce := match(t, `script-src 'nonce-([^']+)'`, policy)
	require(t, strings.HasPrefix(policy, "default-src 'none'; "), policy)
	for _, tag := range regexp.MustCompile(`<(?:script|style)[^>]*>`).FindAllString(shown.body, -1) {
		require(t, strings.Contains(tag, `nonce="`+nonce+`"`), tag)
	}
}

// waiting returns the number and the fields of the waiting page.
func (b *browser) waiting() (string, url.Values) {
	b.t.Helper()
	shown := b.get("/second-factor/")
	require(b.t, shown.status == 200 && shown.header.Get("Cache-Control") == "no-store", shown)
	loadsNothing(b.t, shown)
	token := match(b.t, `name="form_token" value="([^"]+)"`, shown.body)
	return match(b.t, `class="number">([0-9]+)<`, shown.body), url.Values{"form_token": {token}}
}

// enrol shows the code for a first phone, and has a phone read it.
func (w *world) enrol(b *browser, form url.Values, phone string) {
	w.t.Helper()
	shown := b.post("/login", form)
	require(w.t, shown.status == 200 && strings.Contains(shown.body, "<svg"), shown)
	require(w.t, shown.header.Get("Cache-Control") == "no-store", shown.header)
	if phone != "" {
		w.real.Enrol(w.t, match(w.t, `id="enrol" href="([^"]+)"`, shown.body), phone)
	}
}

func credentials(username, password string) url.Values {
	return url.Values{"username": {username}, "password": {password}}
}

func TestLogIn(t *testing.T) {
	w := newWorld(t, map[string]string{"ada": "correct horse"})
	b, form := w.browser(), credentials("ada", "correct horse")
	w.enrol(b, form, "") // the user closes the page, and gets another code
	w.enrol(b, form, "ada")

	require(t, b.post("/login", credentials("ada", "wrong")).status == 403)
	require(t, b.post("/login", credentials("nobody", "")).status == 403)
	started := b.post("/login", form)
	require(t, started.status == 303 && started.header.Get("Location") == "/second-factor/", started)
	number, fields := b.waiting()
	require(t, !strings.Contains(b.get("/").body, "Welcome"))
	require(t, b.get("/second-factor/state").body == `{"ended": false}`)
	require(t, b.post("/second-factor/", fields).status == 200) // too early: the page stays
	w.real.Approve(t, b.login().Challenge, number, "ada")
	require(t, b.get("/second-factor/state").body == `{"ended": true}`)
	require(t, !strings.Contains(b.get("/").body, "Welcome")) // only the POST lets in

	for _, forged := range []url.Values{{"form_token": {"x"}}, {}, {"form_token": {""}}} {
		shown := b.post("/second-factor/", forged)
		require(t, shown.status == 403 && len(shown.header.Values("Set-Cookie")) == 0, shown)
	}
	require(t, b.send("PUT", "/second-factor/", fields).status == 405)
	require(t, b.get("/second-factor/other").status == 404)
	done := b.post("/second-factor/", fields)
	require(t, done.status == 303 && done.header.Get("Location") == "/", done)
	require(t, strings.Contains(b.get("/").body, "Welcome, ada"))
	again := b.post("/second-factor/", fields)
	require(t, again.status == 303 && len(again.header.Values("Set-Cookie")) == 0, again)
	require(t, strings.Contains(b.get("/").body, "Welcome, ada"))
}

func TestSecondSubmissionNeitherLogsInNorOut(t *testing.T) {
	w := newWorld(t, map[string]string{"dora": "x y z"})
	b, form := w.browser(), credentials("dora", "x y z")
	w.enrol(b, form, "dora")
	b.post("/login", form)
	number, fields := b.waiting()
	w.real.Approve(t, b.login().Challenge, number, "dora")
	var (
		group    sync.WaitGroup
		mutex    sync.Mutex
		sessions int
	)
	for i := 0; i < 4; i++ {
		// Each has the cookies from before, as a browser has that submits a form twice.
		double := *b
		double.client.Jar = copied(t, b)
		group.Add(1)
		go func() {
			defer group.Done()
			shown := double.post("/second-factor/", fields)
			mutex.Lock()
			defer mutex.Unlock()
			if strings.Contains(strings.Join(shown.header.Values("Set-Cookie"), ";"), "__Host-session") {
				sessions++
			} else if len(shown.header.Values("Set-Cookie")) != 0 {
				t.Error("a session has changed", shown.header)
			}
			if shown.status != 303 || shown.header.Get("Location") != "/" {
				t.Error(shown)
			}
		}()
	}
	group.Wait()
	require(t, sessions == 1, sessions)
}

func copied(t *testing.T, b *browser) http.CookieJar {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(b.at)
	if err != nil {
		t.Fatal(err)
	}
	cookies := b.client.Jar.Cookies(address)
	for _, cookie := range cookies {
		cookie.Secure, cookie.Path = true, "/"
	}
	jar.SetCookies(address, cookies)
	return jar
}

func TestUnboundPhoneMakesNoRoomForAnother(t *testing.T) {
	w := newWorld(t, map[string]string{"cleo": "open sesame"})
	b, form, ctx := w.browser(), credentials("cleo", "open sesame"), context.Background()
	w.enrol(b, form, "cleo")
	require(t, b.post("/login", form).status == 303)
	token, _ := w.store.Token(ctx, "cleo")
	pins, _ := w.store.Pins(ctx, "cleo")
	require(t, token != "" && len(pins) == 1)
	for device := range pins {
		_ = w.store.UnpinByToken(ctx, token, device) // as the relay's webhook does
	}
	shown := b.post("/login", form)
	require(t, shown.status == 403 && strings.Contains(shown.body, "help desk"), shown)
	require(t, !strings.Contains(shown.body, "<svg"), shown)
}

func TestDenied(t *testing.T) {
	w := newWorld(t, map[string]string{"bob": "battery staple"})
	b, form := w.browser(), credentials("bob", "battery staple")
	w.enrol(b, form, "bob")
	b.post("/login", form)
	_, fields := b.waiting()
	require(t, w.real.Answer(t, "deny", b.login().Challenge, "", "bob") == 0)
	shown := b.post("/second-factor/", fields)
	require(t, shown.status == 403 && strings.Contains(shown.body, "not approved"), shown)
	loadsNothing(t, shown)
	require(t, !strings.Contains(b.get("/").body, "Welcome"))
	require(t, b.get("/second-factor/").status == 303) // the login is over
}

func TestBrowserLogsIn(t *testing.T) {
	w := newWorld(t, map[string]string{"eve": "a b c"})
	b := chromium.Start(t)
	challenges := make(chan string, 1)
	inner := w.server.Config.Handler
	w.server.Config.Handler = http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		inner.ServeHTTP(writer, request)
		for _, one := range writer.Header().Values("Set-Cookie") {
			if value := strings.TrimPrefix(one, "__Host-twoefay="); value != one && request.URL.Path == "/login" {
				challenges <- loginOf(t, value).Challenge
			}
		}
	})
	fill := `document.forms[0].username.value = "eve"; document.forms[0].password.value = "a b c"; ` +
		`document.forms[0].submit(); ""`
	b.Go(w.server.URL)
	b.Load(func() { b.Run(fill) })
	uri := b.Run(`document.getElementById("enrol").href`)
	requirePicture(t, b, uri)
	w.real.Enrol(t, uri, "eve")

	b.Go(w.server.URL)
	b.Load(func() { b.Run(fill) })
	number := b.Run(`document.querySelector(".number").textContent`)
	// The script of the page goes on by itself, once the phone has answered.
	b.Load(func() { w.real.Approve(t, <-challenges, number, "eve") })
	require(t, b.Run(`document.body.innerText.trim()`) == "Welcome, eve")

	b.Load(func() { b.Run(`location.href = "/second-factor/"; ""`) })
	require(t, b.Run(`document.body.innerText.trim()`) == "Welcome, eve")
	for _, one := range b.Errors {
		// A browser asks each site for its icon.
		if !strings.Contains(one, "favicon.ico") {
			t.Error(one)
		}
	}
}

// requirePicture has a foreign decoder read the QR code as the browser shows it.
func requirePicture(t *testing.T, b *chromium.Browser, uri string) {
	t.Helper()
	decoder, err := exec.LookPath("zbarimg")
	if err != nil {
		t.Log("no zbarimg: the QR code of the page is not read by a decoder")
		return
	}
	file := filepath.Join(t.TempDir(), "page.png")
	b.Picture(file)
	read, err := exec.Command(decoder, "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", file).Output()
	require(t, err == nil && strings.TrimSpace(string(read)) == uri, string(read), err)
}
