package keepers

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// LeastSecret is how long a secret must be, in bytes. It must not be guessed: who listens to a
// connection that he opened himself can compare guesses with it.
const LeastSecret = 32

// FromSecret makes TLS settings, for both sides of a connection, by which only processes with the
// same secret understand each other: the key of the one certificate is made from it.
func FromSecret(secret []byte) (*tls.Config, error) {
	if len(secret) < LeastSecret {
		return nil, fmt.Errorf("a secret of at least %d bytes is needed, got %d", LeastSecret,
			len(secret))
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "kdedup keepers 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	// Nobody looks at the times: the key is what counts.
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject:   pkix.Name{CommonName: "kdedup keepers"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(nil, template, template, public, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert,
		// The certificate has no name, and no authority. VerifyConnection compares its key instead.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errStranger
			}
			theirs, is := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !is || !bytes.Equal(theirs, public) {
				return errStranger
			}
			return nil
		},
	}, nil
}

var errStranger = errors.New("the other side has another secret")
