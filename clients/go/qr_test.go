package twoefay

import (
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// textOfSize returns a text without a pattern that a wrong decoder could guess.
func textOfSize(size int) string {
	var text strings.Builder
	for i := 0; text.Len() < size; i++ {
		fmt.Fprintf(&text, "%x-", i*i*7919)
	}
	return text.String()[:size]
}

// most returns the most bytes that a version holds.
func most(version int) int { return (8*qrDataCodewords(version) - 4 - qrCountBits(version)) / 8 }

// TestCodesAreRead has a foreign decoder read the largest and the smallest code of each version.
func TestCodesAreRead(t *testing.T) {
	decoder, err := exec.LookPath("zbarimg")
	if err != nil {
		t.Skip("no zbarimg: QR codes are not read by a decoder")
	}
	directory := t.TempDir()
	var files, texts []string
	for version := 1; version <= 40; version++ {
		least := 1
		if version > 1 {
			least = most(version-1) + 1
		}
		for _, size := range []int{least, most(version)} {
			text := textOfSize(size)
			code := must[*qrCode](t)(makeQR([]byte(text)))
			if code.version != version {
				t.Fatal(code.version, version)
			}
			file := filepath.Join(directory, fmt.Sprintf("%d-%d.png", version, size))
			writePNG(t, file, code.size, func(x, y int) bool { return code.dark[y][x] })
			files, texts = append(files, file), append(texts, text)
		}
	}
	command := exec.Command(decoder, append([]string{"--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"}, files...)...)
	output, err := command.Output()
	if err != nil {
		t.Fatal(err, string(output))
	}
	if read := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n"); len(read) != len(texts) {
		t.Error("read", len(read), "of", len(texts))
	} else {
		for i := range read {
			if read[i] != texts[i] {
				t.Error(files[i], "reads", read[i])
			}
		}
	}
}

func writePNG(t *testing.T, file string, size int, isDark func(x, y int) bool) {
	t.Helper()
	const scale, border = 4, 4
	picture := image.NewGray(image.Rect(0, 0, (size+2*border)*scale, (size+2*border)*scale))
	for y := 0; y < picture.Rect.Max.Y; y++ {
		for x := 0; x < picture.Rect.Max.X; x++ {
			column, row := x/scale-border, y/scale-border
			shade := color.Gray{255}
			if x/scale >= border && y/scale >= border && column < size && row < size && isDark(column, row) {
				shade.Y = 0
			}
			picture.SetGray(x, y, shade)
		}
	}
	into := must[*os.File](t)(os.Create(file))
	defer into.Close()
	if err := png.Encode(into, picture); err != nil {
		t.Fatal(err)
	}
}

func TestSVGShowsTheCode(t *testing.T) {
	text := textOfSize(300)
	code := must[*qrCode](t)(makeQR([]byte(text)))
	drawn := must[string](t)(drawQR([]byte(text), `<"&>`))
	var svg struct {
		XMLName xml.Name `xml:"svg"`
		Title   string   `xml:"title"`
		Paths   []struct {
			D string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.Unmarshal([]byte(drawn), &svg); err != nil || svg.Title != `<"&>` || len(svg.Paths) != 2 {
		t.Fatal(svg, err)
	}
	for _, weak := range []string{"style", "script", "href", "onload"} {
		if strings.Contains(drawn, weak) {
			t.Error("the page's policy forbids", weak)
		}
	}
	dark := map[[2]int]bool{}
	for _, run := range strings.Split(strings.Trim(svg.Paths[1].D, "Mz"), "zM") {
		var x, y, length, back int
		if _, err := fmt.Sscanf(run, "%d %dh%dv1H%d", &x, &y, &length, &back); err != nil || back != x {
			t.Fatal(run, err)
		}
		for i := 0; i < length; i++ {
			dark[[2]int{x + i - qrBorder, y - qrBorder}] = true
		}
	}
	for y := range code.dark {
		for x := range code.dark[y] {
			if dark[[2]int{x, y}] != code.dark[y][x] {
				t.Fatal("differs at", x, y)
			}
		}
	}
}

// The example of ISO/IEC 18004 for the remainder, as many descriptions of QR codes repeat it: HELLO
// WORLD as 1-M.
func TestCorrectionIsThatOfTheStandard(t *testing.T) {
	data := []byte{32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17}
	expected := []byte{196, 35, 39, 119, 235, 215, 231, 226, 93, 23}
	if found := qrRemainder(data, qrDivisor(10)); string(found) != string(expected) {
		t.Error(found)
	}
}

func TestLongestURIFits(t *testing.T) {
	rules := policy{phones: NativePhones, appOrigin: "https://" + strings.Repeat("a", 120)}
	made := must[Enrolment](t)(readEnrolment(rules, "t", Object{
		"uri": uriStart + "a=" + strings.Repeat("x", mostURI-len(uriStart)-2), "expires_at": "2026-11-22T08:10:00.000Z",
	}, make([]byte, 32)))
	if _, err := made.QR(); err != nil {
		t.Error(err)
	}
	if _, err := drawQR(make([]byte, 2332), ""); err == nil {
		t.Error("drawn")
	}
	if _, err := (Enrolment{SentTo: "a…@example.com"}).QR(); err == nil {
		t.Error("nothing to draw, and drawn")
	}
}
