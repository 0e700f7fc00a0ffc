package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// bank is the work that must not be done twice. It knows nothing of keys.
type bank struct {
	delay time.Duration

	mu       sync.Mutex
	payments int
	balance  int
}

const openingBalance = 100

func newBank(delay time.Duration) *bank { return &bank{delay: delay, balance: openingBalance} }

func (b *bank) pay(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Amount int    `json:"amount"`
		To     string `json:"to"`
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.Amount <= 0 ||
		order.To == "" {
		http.Error(w, `want {"amount": 10, "to": "bob"}`, http.StatusBadRequest)
		return
	}
	time.Sleep(b.delay)
	b.mu.Lock()
	defer b.mu.Unlock()
	if order.Amount > b.balance {
		http.Error(w, "not enough money", http.StatusUnprocessableEntity)
		return
	}
	b.balance -= order.Amount
	b.payments++
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"payment": b.payments, "amount": order.Amount,
		"to": order.To})
}

func (b *bank) showBalance(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]int{"balance": b.balance, "payments": b.payments})
}
