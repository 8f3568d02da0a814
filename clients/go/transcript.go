package peripety

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Transcript is a verified session.
type Transcript struct {
	// Turns is the number of turns.
	Turns int
	// ChainHash is the chain hash after the last turn. It is proof only if you compare it with one from a trusted
	// source.
	ChainHash string
	// StateHash is the hash of the state after the last turn; empty without turns.
	StateHash string
	// SpecHash is the hash of the specification.
	SpecHash string
}

// TranscriptError is the first defect of a transcript.
type TranscriptError struct {
	// Line is the false line, from 1.
	Line int
	// Turn is the turn of the line; 0 if the line is not a turn.
	Turn int
	// Problem is the defect.
	Problem string
}

// Error returns the line, its turn and the defect.
func (e *TranscriptError) Error() string {
	if e.Turn == 0 {
		return fmt.Sprintf("line %d: %s; export the session again", e.Line, e.Problem)
	}
	return fmt.Sprintf("line %d (turn %d): %s; export the session again", e.Line, e.Turn, e.Problem)
}

type object = map[string]any

// VerifyTranscript verifies an exported session without a server and without an engine: every line is canonical, every
// hash is the computed one, and nothing was left out. It reads one line at a time.
//
// It returns a [*TranscriptError] for the first false line, or the error of the reader. It proves that the turns are
// those that led to the chain hash. Only a replay (ImportSession) proves that the rules were followed.
func VerifyTranscript(bundle io.Reader) (Transcript, error) {
	lines := newLines(bundle)
	header := lines.next(0)
	supported := header["kind"] == "peripety.session" && header["version"] == 1.0 &&
		header["engine_version"] == "1.0" && header["rng_version"] == 1.0
	lines.check(supported, 0, "not a session of a supported version")
	specHash, hasSpec := header["spec_hash"].(string)
	turns, hasTurns := header["turns"].(float64)
	_, hasSeed := header["first_seed"].(float64)
	lines.check(hasSpec && hasTurns && hasSeed, 0, "a key of the header is missing or has another type")
	for _, key := range []string{"spec_hash", "certificate_hash"} {
		if header[key] != nil {
			lines.next(0)
			isSame := header[key] == sha256Hex(bytes.TrimSuffix(lines.line, []byte("\n")))
			lines.check(isSame, 0, "SHA-256 of the line is not "+key+" of the header")
		}
	}
	chain := sha256Hex(canonicalJSON(nil, object{"seed": header["first_seed"], "spec_hash": specHash}))
	turn, stateHash := 0, ""
	for lines.err == nil && !lines.isBeforeLast() {
		turn++
		chain, stateHash = lines.verifyTurn(turn, chain)
		lines.check(float64(turn) <= turns, turn, "more turns than the header declares")
	}
	lines.checkAt(lines.number+1, float64(turn) == turns, 0, "a turn is missing that the header declares")
	lines.checkAt(1, header["chain_hash"] == chain, 0, "chain_hash: computed "+chain)
	lines.checkAt(lines.number+1, bytes.Equal(lines.ahead, lines.seal()), 0, "not the hash of the lines before it")
	if lines.err != nil {
		return Transcript{}, lines.err
	}
	return Transcript{turn, chain, stateHash, specHash}, nil
}

// lines reads a bundle line by line, hashes all lines read, and records the first error.
type lines struct {
	source             *bufio.Reader
	hash               hash.Hash
	line, ahead, after []byte
	number             int
	err                error
}

func newLines(bundle io.Reader) *lines {
	l := &lines{source: bufio.NewReader(bundle), hash: sha256.New()}
	l.ahead, l.after = l.read(), l.read()
	return l
}

func (l *lines) read() []byte {
	line, err := l.source.ReadBytes('\n')
	if err != nil && err != io.EOF && l.err == nil {
		l.err = err
	}
	return line
}

// isBeforeLast returns true if at most one line is left.
func (l *lines) isBeforeLast() bool { return len(l.after) == 0 }

// next returns the value of the next line, which must be an object in canonical form.
func (l *lines) next(turn int) object {
	l.line, l.ahead, l.after = l.ahead, l.after, l.read()
	l.number++
	l.hash.Write(l.line)
	var value any
	decoder := json.NewDecoder(bytes.NewReader(l.line))
	decoder.UseNumber()
	isJSON := decoder.Decode(&value) == nil
	value, isFinite := withDoubles(value)
	found, isObject := value.(object)
	// Whatever the decoder tolerates, such as invalid UTF-8, is not the canonical form.
	isCanonical := isJSON && isFinite && isObject && bytes.Equal(append(canonicalJSON(nil, value), '\n'), l.line)
	l.check(isCanonical, turn, "not an object in canonical JSON")
	return found
}

func (l *lines) check(isRight bool, turn int, problem string) {
	l.checkAt(l.number, isRight, turn, problem)
}

func (l *lines) checkAt(line int, isRight bool, turn int, problem string) {
	if !isRight && l.err == nil {
		l.err = &TranscriptError{line, turn, problem}
	}
}

// verifyTurn returns the chain hash and the state hash after a turn.
func (l *lines) verifyTurn(turn int, chain string) (string, string) {
	value := l.next(turn)
	record, isRecord := value["record"].(object)
	events, _ := value["events"].([]any)
	end := object{}
	if len(events) > 0 {
		end, _ = events[len(events)-1].(object)
	}
	isTurn := isRecord && record["turn"] == float64(turn) && end["kind"] == "committed"
	l.check(isTurn, turn, "not the record of this turn up to its committed event")
	before, _ := hex.DecodeString(chain)
	chain = sha256Hex(canonicalJSON(before, record))
	l.check(end["chain_hash"] == chain, turn, "chain_hash: computed "+chain)
	for _, key := range []string{"changes", "state_hash", "status"} {
		recorded, isRecorded := record[key]
		sent, isSent := end[key]
		isSame := isRecorded && isSent && bytes.Equal(canonicalJSON(nil, recorded), canonicalJSON(nil, sent))
		l.check(isSame, turn, key+" of the committed event differs from the record")
	}
	stateHash, _ := record["state_hash"].(string)
	return chain, stateHash
}

// seal returns the last line of a bundle with the lines read so far.
func (l *lines) seal() []byte {
	sum := hex.EncodeToString(l.hash.Sum(nil))
	value := object{"kind": "peripety.session.end", "lines": float64(l.number), "sha256": sum}
	return append(canonicalJSON(nil, value), '\n')
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// withDoubles replaces the numbers of a decoded value by doubles. It returns false if one is out of range.
func withDoubles(value any) (any, bool) {
	isFinite := true
	switch value := value.(type) {
	case json.Number:
		number, err := value.Float64()
		return number, err == nil
	case object:
		for key, member := range value {
			member, ok := withDoubles(member)
			value[key], isFinite = member, isFinite && ok
		}
	case []any:
		for index, item := range value {
			item, ok := withDoubles(item)
			value[index], isFinite = item, isFinite && ok
		}
	}
	return value, isFinite
}

// canonicalJSON appends the canonical form of a JSON value (RFC 8785).
func canonicalJSON(text []byte, value any) []byte {
	switch value := value.(type) {
	case bool:
		return strconv.AppendBool(text, value)
	case float64:
		return appendNumber(text, value)
	case string:
		return appendText(text, value)
	case []any:
		text = append(text, '[')
		for index, item := range value {
			if index > 0 {
				text = append(text, ',')
			}
			text = canonicalJSON(text, item)
		}
		return append(text, ']')
	case object:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		slices.SortFunc(names, compareUTF16)
		text = append(text, '{')
		for index, name := range names {
			if index > 0 {
				text = append(text, ',')
			}
			text = canonicalJSON(append(appendText(text, name), ':'), value[name])
		}
		return append(text, '}')
	default: // nil
		return append(text, "null"...)
	}
}

// compareUTF16 compares texts by their UTF-16 code units.
func compareUTF16(left, right string) int {
	return slices.Compare(utf16.Encode([]rune(left)), utf16.Encode([]rune(right)))
}

func appendText(text []byte, value string) []byte {
	text = append(text, '"')
	for index := range len(value) {
		switch character := value[index]; {
		case character == '"' || character == '\\':
			text = append(text, '\\', character)
		case character >= ' ':
			text = append(text, character)
		default:
			if short := strings.IndexByte("\b\t\n\f\r", character); short >= 0 {
				text = append(text, '\\', "btnfr"[short])
			} else {
				text = fmt.Appendf(text, `\u%04x`, character)
			}
		}
	}
	return append(text, '"')
}

// appendNumber appends a finite number as ECMAScript writes it.
func appendNumber(text []byte, value float64) []byte {
	if value == 0 {
		return append(text, '0')
	}
	if size := max(value, -value); 1e-6 <= size && size < 1e21 {
		return strconv.AppendFloat(text, value, 'f', -1, 64)
	}
	scientific := strconv.FormatFloat(value, 'e', -1, 64) // with an exponent of at least two digits
	mantissa, exponent, _ := strings.Cut(scientific, "e")
	return fmt.Appendf(text, "%se%c%s", mantissa, exponent[0], strings.TrimLeft(exponent[1:], "0"))
}
