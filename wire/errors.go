package wire

import "strconv"

// Code names a kind of error for programs. The list is append-only.
type Code string

// The error codes.
const (
	CodeMalformed    Code = "malformed"    // the text breaks the rules of messages
	CodeUnknownType  Code = "unknown_type" // no such message type, or not one that this side takes
	CodeUnknownOp    Code = "unknown_op"   // no such operation of a control message
	CodeUnregistered Code = "unregistered" // say register or hello first, or somebody took the id over
	CodeUnauthorized Code = "unauthorized" // the token is missing or wrong
	CodeForbidden    Code = "forbidden"    // the role does not allow it
	CodeNotFound     Code = "not_found"    // nothing has the id, or several share the prefix
	CodeConflict     Code = "conflict"     // the id names other work already
	CodeInvalid      Code = "invalid"      // a rule is broken; the message says which
	CodeTooLarge     Code = "too_large"    // over a limit of size
	CodeDiskFull     Code = "disk_full"    // no new work while the journal's disk has no room
	CodeStopping     Code = "stopping"     // no new work while the controller stops
	CodeTimeout      Code = "timeout"      // what was due did not come in time
	CodeBusy         Code = "busy"         // too many connections
	CodeWrongFolder  Code = "wrong_folder" // this controller serves another data folder
	CodeUnavailable  Code = "unavailable"  // this controller does not offer it
	CodeInternal     Code = "internal"     // a fault of the controller; its log says more
)

// Codes lists all of them.
func Codes() []Code {
	return []Code{
		CodeMalformed, CodeUnknownType, CodeUnknownOp, CodeUnregistered, CodeUnauthorized, CodeForbidden,
		CodeNotFound, CodeConflict, CodeInvalid, CodeTooLarge, CodeDiskFull, CodeStopping, CodeTimeout, CodeBusy,
		CodeWrongFolder, CodeUnavailable, CodeInternal,
	}
}

// Error is a peer's error message.
type Error struct {
	Code    Code
	Message string
	Fatal   bool    // the connection ends
	Faults  []Fault // of a submit: what is wrong with which task
}

// Fault is one refused item of a list.
type Fault struct {
	Index   int // from 0
	Message string
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is compare codes.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code && other.Message == ""
}

// These keep an error within a frame.
const (
	maxFaults = 500
	maxFault  = 400      // bytes of one
	maxText   = 16 << 10 // bytes of a message for people
)

// AppendError appends a type=error frame.
func AppendError(dst []byte, e *Error) []byte {
	dst, at := beginMessage(dst, TypeError)
	dst = appendText(dst, "code", string(e.Code))
	dst = appendText(dst, "message", cut(e.Message, maxText))
	dst = appendText(dst, "fatal", strconv.FormatBool(e.Fatal))
	for i, f := range e.Faults {
		if i == maxFaults {
			break
		}
		n := strconv.Itoa(i)
		dst = appendText(dst, n+".index", strconv.Itoa(f.Index))
		dst = appendText(dst, n+".message", cut(f.Message, maxFault))
	}
	return endMessage(dst, at)
}

// ParseError reads a type=error message.
func ParseError(m *Message) (*Error, error) {
	f := fields{m: m}
	e := &Error{Code: Code(f.need("code")), Message: f.text("message"), Fatal: f.flag("fatal")}
	err := eachRow(m, func(row *Message) error {
		rf := fields{m: row}
		e.Faults = append(e.Faults, Fault{Index: int(rf.count("index")), Message: rf.text("message")})
		return rf.err
	})
	if f.err == nil {
		f.err = err
	}
	return e, f.err
}
