package peripety

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// The folder of the bundles; the environment variable names another one.
var folder = cmp.Or(os.Getenv("PERIPETY_TRANSCRIPTS"), "../../tests/data/transcripts") + "/"

type change struct {
	Name           string
	Line           int
	At             *int
	Delete         int
	Insert         string
	SwapWith       *int `json:"swap_with"`
	IsResealed     bool `json:"is_resealed"`
	FirstFalseLine int  `json:"first_false_line"`
	FirstFalseTurn int  `json:"first_false_turn"`
}

type entry struct {
	Turns     int
	ChainHash string `json:"chain_hash"`
	StateHash string `json:"state_hash"`
	Tampered  []change
}

func readGolden(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(folder + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (c change) apply(bundle []byte) []byte {
	lines := bytes.SplitAfter(bundle, []byte("\n"))
	lines = lines[:len(lines)-1]
	index := c.Line - 1
	switch {
	case c.At != nil:
		rest := lines[index][*c.At+c.Delete:]
		lines[index] = slices.Concat(lines[index][:*c.At], []byte(c.Insert), rest)
	case c.SwapWith != nil:
		lines[index], lines[*c.SwapWith-1] = lines[*c.SwapWith-1], lines[index]
	default:
		lines = slices.Delete(lines, index, index+1)
	}
	if c.IsResealed {
		return reseal(lines)
	}
	return slices.Concat(lines...)
}

// reseal returns the lines with a correct last line, as a forger would write it.
func reseal(lines [][]byte) []byte {
	before := slices.Concat(lines[:len(lines)-1]...)
	seal := `{"kind":"peripety.session.end","lines":%d,"sha256":"%x"}` + "\n"
	return fmt.Appendf(before, seal, len(lines)-1, sha256.Sum256(before))
}

func defectOf(t *testing.T, bundle []byte) *TranscriptError {
	t.Helper()
	_, err := VerifyTranscript(bytes.NewReader(bundle))
	var defect *TranscriptError
	if !errors.As(err, &defect) {
		t.Fatalf("the bundle was accepted, or could not be read: %v", err)
	}
	return defect
}

func TestEveryGoldenSessionIsVerifiedAndEachChangeRefused(t *testing.T) {
	var index map[string]entry
	if err := json.Unmarshal(readGolden(t, "index.json"), &index); err != nil {
		t.Fatal(err)
	}
	if len(index) < 20 {
		t.Fatalf("only %d sessions", len(index))
	}
	changes := 0
	for name, entry := range index {
		bundle := readGolden(t, name)
		verified, err := VerifyTranscript(bytes.NewReader(bundle))
		if err != nil || verified.Turns != entry.Turns || verified.ChainHash != entry.ChainHash ||
			verified.StateHash != entry.StateHash {
			t.Errorf("%s: %+v, %v", name, verified, err)
		}
		for _, change := range entry.Tampered {
			defect := defectOf(t, change.apply(bundle))
			if defect.Line != change.FirstFalseLine || defect.Turn != change.FirstFalseTurn {
				t.Errorf("%s, %s: %v", name, change.Name, defect)
			}
			changes++
		}
	}
	t.Logf("%d sessions, %d changes", len(index), changes)
	if changes < len(index) {
		t.Errorf("only %d changes", changes)
	}
}

func TestABundleIsRefusedAtEveryCut(t *testing.T) {
	bundle := readGolden(t, "won.jsonl")
	for length := 0; length < len(bundle); length += 7 {
		defectOf(t, bundle[:length])
	}
}

func TestTextThatOnlyLooksCanonicalIsRefused(t *testing.T) {
	bundle := readGolden(t, "won.jsonl")
	lines := bytes.SplitAfter(bundle, []byte("\n"))
	lines = lines[:len(lines)-1]
	original := lines[2]
	prose := bytes.Index(original, []byte(`"narrative":"`)) + len(`"narrative":"`)
	for _, text := range []string{`\ud800`, `\u0041`, `\/`, `\u001F`, "\xff"} {
		lines[2] = slices.Concat(original[:prose], []byte(text), original[prose:])
		if defect := defectOf(t, reseal(lines)); defect.Line != 3 {
			t.Errorf("%q: %v", text, defect)
		}
	}
	if defect := defectOf(t, append([]byte("\ufeff"), bundle...)); defect.Line != 1 {
		t.Error(defect)
	}
}

func TestNumbersAndTextsHaveTheCanonicalForm(t *testing.T) {
	cases := map[string]string{
		`1.0`:                    `1`,
		`0.30000000000000004`:    `0.30000000000000004`,
		`9007199254740993`:       `9007199254740992`,
		`1e21`:                   `1e+21`,
		`1E20`:                   `100000000000000000000`,
		`0.000001`:               `0.000001`,
		`0.0000001`:              `1e-7`,
		`5e-324`:                 `5e-324`,
		`1.7976931348623157e308`: `1.7976931348623157e+308`,
		`-0.0`:                   `0`,
		`-1.5e-9`:                `-1.5e-9`,
		`"\b\t\n\f\r\"\\\u0000\u001f\u007f\u2028\u003c"`:      "\"\\b\\t\\n\\f\\r\\\"\\\\\\u0000\\u001f\u007f\u2028<\"",
		`{"\ufb33": 1, "\ud83d\ude00": 2, "10": 3, "9": [ ]}`: "{\"10\":3,\"9\":[],\"\U0001f600\":2,\"\ufb33\":1}",
		`[null, true, false]`:                                 `[null,true,false]`,
	}
	for text, expected := range cases {
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		value, isFinite := withDoubles(value)
		if canonical := string(canonicalJSON(nil, value)); canonical != expected || !isFinite {
			t.Errorf("%s: %s, expected %s", text, canonical, expected)
		}
	}
	if _, isFinite := withDoubles([]any{json.Number("1e999")}); isFinite {
		t.Error("a number out of range was accepted")
	}
}
