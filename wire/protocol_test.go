package wire

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the bytes of the examples in PROTOCOL.md anew")

const protocolFile = "PROTOCOL.md"

// docMessage is an example of PROTOCOL.md.
type docMessage struct {
	text, hex string
	proto     int
}

var example = regexp.MustCompile("(?s)```message( proto=2)?\n(.*?)\n```\n\n```hex\n(.*?)```\n")

func docMessages(t testing.TB) (list []docMessage) {
	t.Helper()
	doc, err := os.ReadFile(protocolFile)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		doc = example.ReplaceAllFunc(doc, func(block []byte) []byte {
			text := example.FindSubmatch(block)[2]
			head, _, _ := bytes.Cut(block, []byte("```hex"))
			return fmt.Appendf(nil, "%s```hex\n%s```\n", head, hexDump(AppendFrame(nil, text)))
		})
		if err := os.WriteFile(protocolFile, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range example.FindAllSubmatch(doc, -1) {
		proto := 1
		if len(m[1]) > 0 {
			proto = 2
		}
		list = append(list, docMessage{string(m[2]), string(m[3]), proto})
	}
	if n := bytes.Count(doc, []byte("```message")); n != len(list) || n < 20 {
		t.Fatalf("%d examples, %d with their bytes", n, len(list))
	}
	return list
}

func hexDump(frame []byte) []byte {
	var out []byte
	for len(frame) > 0 {
		n := min(len(frame), 48)
		out = append(hex.AppendEncode(out, frame[:n]), '\n')
		frame = frame[n:]
	}
	return out
}

// The examples are what the code reads and writes, byte for byte.
func TestProtocolExamples(t *testing.T) {
	seen := map[Type]bool{}
	for _, example := range docMessages(t) {
		frame, err := hex.DecodeString(strings.ReplaceAll(example.hex, "\n", ""))
		if err != nil || !bytes.Equal(frame, AppendFrame(nil, []byte(example.text))) {
			t.Errorf("%q: its bytes are others (go test -update writes them): %v", example.text, err)
			continue
		}
		m, err := ParseMessage(frame[header:])
		if err != nil {
			t.Errorf("%q: %v", example.text, err)
			continue
		}
		seen[m.Type] = true
		again, err := recode(m, example.proto)
		if err != nil || string(again[header:]) != example.text && !sameButOrder(m, again) {
			t.Errorf("%q encodes again to\n%q: %v", example.text, again, err)
		}
	}
	for _, typ := range Types() {
		if !seen[typ] {
			t.Errorf("no example of type=%s", typ)
		}
	}
}

// sameButOrder allows for the document's own result, which has version after status.
func sameButOrder(m *Message, frame []byte) bool {
	again, err := ParseMessage(frame[header:])
	if err != nil || again.Len() != m.Len() || m.Type != TypeResult {
		return false
	}
	for key, value := range m.All() {
		if got, ok := again.Get(key); !ok || got != value {
			return false
		}
	}
	return true
}

// Nothing of the code is missing in the text.
func TestProtocolIsComplete(t *testing.T) {
	doc, err := os.ReadFile(protocolFile)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, typ := range Types() {
		names = append(names, string(typ))
	}
	for _, code := range Codes() {
		names = append(names, string(code))
	}
	for _, op := range Ops() {
		names = append(names, string(op))
	}
	for _, name := range names {
		if !bytes.Contains(doc, []byte("`"+name+"`")) {
			t.Errorf("%s does not name `%s`", protocolFile, name)
		}
	}
	for _, limit := range []int{FirstFrame >> 10, MaxFields, MaxKey, MaxExecutorID, MaxSubmit, maxIDs, maxHeld, maxFileName, maxRestored} {
		if !bytes.Contains(doc, fmt.Append(nil, limit)) {
			t.Errorf("%s does not name the limit %d", protocolFile, limit)
		}
	}
	if n := fmt.Sprint(MaxUpload>>20, " MiB"); !bytes.Contains(doc, []byte(n)) {
		t.Errorf("%s does not name the limit %s of an upload", protocolFile, n)
	}
}

// The lists that the test above goes by are themselves complete.
func TestListsAreComplete(t *testing.T) {
	for file, list := range map[string]int{"message.go": len(Types()), "errors.go": len(Codes()), "control.go": len(Ops())} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		constant := regexp.MustCompile(`(?m)^\t(Type|Code|Op)\w+ +(Type|Code|Op) = "`)
		if n := len(constant.FindAll(source, -1)); n != list {
			t.Errorf("%s: %d constants, %d in the list", file, n, list)
		}
	}
}
