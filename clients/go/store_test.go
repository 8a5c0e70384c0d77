package twoefay_test

import (
	"testing"

	"twoefay"
	"twoefay/internal/storecheck"
)

func TestMemoryStore(t *testing.T) {
	storecheck.Check(t, twoefay.NewMemoryStore())
}
