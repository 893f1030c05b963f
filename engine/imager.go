package engine

import (
	"bytes"
	"errors"
)

// imageEnd is what the image writer tells the loop when it is done.
type imageEnd struct {
	seq  uint64
	hash string
	size int
	err  error
}

// toImage is the channel to the image writer while a chunk waits for it.
func (e *Engine) toImage() chan<- []byte {
	if e.chunk == nil {
		return nil
	}
	return e.chunks
}

// imageEnds is the channel on which the image writer ends, while there is one.
func (e *Engine) imageEnds() <-chan imageEnd { return e.ends }

// goOnImaging begins an image when one is due, and encodes the next slice of
// one that is being taken. It runs after the turn's records are on disk.
func (e *Engine) goOnImaging() {
	switch {
	case e.ends == nil && e.imageDue():
		e.startImage()
	case e.imaging != nil && e.chunk == nil:
		e.sliceImage()
	}
}

// imageDue is document 000's rule, held back where the journal hardly grew.
func (e *Engine) imageDue() bool {
	if e.images == nil || e.grown < max(imageGrowth, e.imageSize) {
		return false
	}
	return e.m.stateVersion-e.imagedVersion >= imageChange || e.m.now.mono-e.imagedAt >= int64(imageEvery)
}

// startImage fixes the position of a new image and starts its writer.
func (e *Engine) startImage() {
	if e.images == nil {
		return
	}
	w, err := e.images.NewImage(e.m.seq)
	e.imagedAt, e.imagedVersion = e.m.now.mono, e.m.stateVersion
	if err != nil {
		e.log.Warn("no image taken", "seq", e.m.seq, "error", err)
		e.grown = 0
		return
	}
	e.imaging = e.m.beginImage()
	e.content = e.m.content()
	e.chunks = make(chan []byte)
	e.ends = make(chan imageEnd, 1)
	e.grown = 0
	go writeImage(w, e.imaging.seq, e.chunks, e.ends)
	e.sliceImage()
}

// sliceImage encodes the next slots; after the last the description follows.
func (e *Engine) sliceImage() {
	done := e.m.step(e.imaging, imageSlice)
	if !done && len(e.imaging.lines.out) < imageChunk {
		return
	}
	e.chunk = e.imaging.take()
	if !done {
		return
	}
	e.content.Hash = e.imaging.sum.String()
	content, err := e.content.json()
	if err != nil {
		panic("engine: image description: " + err.Error())
	}
	// The description follows the lines after a byte that no line begins with.
	e.chunk = append(append(e.chunk, 0), content...)
	e.imaging, e.m.image = nil, nil
}

// finishImage completes the image being taken, at a stop.
func (e *Engine) finishImage() {
	for e.ends != nil {
		if e.chunk == nil && e.imaging != nil {
			e.sliceImage()
			continue
		}
		select {
		case e.toImage() <- e.chunk:
			e.chunk = nil
		case end := <-e.ends:
			e.noteImage(end)
		}
	}
}

// dropImage ends the image writer when Run ends without it: what was written of
// the image goes.
func (e *Engine) dropImage() {
	if e.ends != nil {
		close(e.chunks)
		e.noteImage(<-e.ends)
	}
}

// endImage records that an image is on disk.
func (e *Engine) endImage(end imageEnd) {
	e.noteImage(end)
	if end.err == nil {
		e.m.emit(&imaged{Seq: end.seq, Hash: end.hash})
	}
}

func (e *Engine) noteImage(end imageEnd) {
	e.ends, e.chunks, e.chunk, e.imaging, e.m.image = nil, nil, nil, nil, nil
	if end.err != nil {
		e.log.Warn("no image taken", "seq", end.seq, "error", end.err)
		return
	}
	e.imageSize, e.imagedSeq = end.size, end.seq
	e.log.Debug("image taken", "seq", end.seq, "bytes", end.size)
}

// writeImage is the image writer's goroutine: it ends when the description has
// come, or at the first error.
func writeImage(w ImageWriter, seq uint64, chunks <-chan []byte, ends chan<- imageEnd) {
	end := imageEnd{seq: seq, err: errNoImage} // unless the description comes
	for chunk := range chunks {
		lines, content, last := bytes.Cut(chunk, []byte{0})
		end.size += len(lines)
		if end.err = writeLines(w, lines); end.err == nil && last {
			end.hash, end.err = imageHash(content)
			if end.err == nil {
				end.err = w.Commit(content)
			}
		}
		if end.err != nil || last {
			break
		}
		end.err = errNoImage
	}
	if end.err != nil {
		end.err = errors.Join(end.err, w.Abort())
	}
	ends <- end
}

var errNoImage = errors.New("the controller ended first")

func writeLines(w ImageWriter, lines []byte) error {
	for line := range bytes.Lines(lines) {
		if err := w.Line(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
	return nil
}
