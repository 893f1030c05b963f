package engine

import "errors"

const (
	aheadItems   = 256 // of a batch
	aheadBatches = 4   // that may wait
)

// errEnough tells the reader that the taker has failed; nobody else sees it.
var errEnough = errors.New("no more is wanted")

// ahead reads in a goroutine of its own, which ends before it returns: what was
// read is taken, in order, by the caller's, while reading goes on. The first
// error ends both; what was read before a fault of reading is still taken.
func ahead[T any](read func(give func(T) error) error, take func(T) error) error {
	batches, enough := make(chan []T, aheadBatches), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		defer close(batches)
		ended <- readBatches(read, batches, enough)
	}()
	var failed error
	for batch := range batches {
		for n := 0; n < len(batch) && failed == nil; n++ {
			if failed = take(batch[n]); failed != nil {
				close(enough)
			}
		}
	}
	if err := <-ended; failed == nil {
		return err
	}
	return failed
}

// readBatches is the reading goroutine.
func readBatches[T any](read func(give func(T) error) error, batches chan<- []T, enough <-chan struct{}) error {
	batch := make([]T, 0, aheadItems)
	send := func() error {
		select {
		case batches <- batch:
			batch = make([]T, 0, aheadItems)
			return nil
		case <-enough:
			return errEnough
		}
	}
	err := read(func(item T) error {
		if batch = append(batch, item); len(batch) < aheadItems {
			return nil
		}
		return send()
	})
	if more := send(); err == nil {
		err = more
	}
	return err
}
