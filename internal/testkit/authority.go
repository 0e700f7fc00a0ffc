package testkit

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for 127.0.0.1 and localhost, good for servers and clients.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that lives as long as its test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.key = a.newKey()
	a.cert = a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "test authority " + rand.Text()[:8]},
		IsCA:         true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}, nil, a.key.Public())
	return a
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return asPEM("CERTIFICATE", a.cert.Raw) }

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Leaf describes a certificate. Zero values have defaults.
type Leaf struct {
	Name   string // common name; "test" by default
	Serial int64  // 1 by default
	Ends   time.Time
}

// Issue makes a key and a certificate for it, both in PEM form.
func (a *Authority) Issue(leaf Leaf) (cert, key []byte) {
	a.t.Helper()
	if leaf.Ends.IsZero() {
		leaf.Ends = time.Now().Add(time.Hour)
	}
	private := a.newKey()
	signed := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(cmp.Or(leaf.Serial, 1)),
		Subject:      pkix.Name{CommonName: cmp.Or(leaf.Name, "test")},
		NotBefore:    time.Now().Add(-24 * time.Hour), NotAfter: leaf.Ends,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a, private.Public())
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return asPEM("CERTIFICATE", signed.Raw), asPEM("PRIVATE KEY", der)
}

// Write issues a certificate into two files of the directory, over those that it wrote before.
func (a *Authority) Write(directory string, leaf Leaf) (certFile, keyFile string) {
	a.t.Helper()
	cert, key := a.Issue(leaf)
	certFile, keyFile = filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	for path, content := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// sign signs with the authority by; without one the certificate signs itself.
func (a *Authority) sign(
	template *x509.Certificate, by *Authority, key crypto.PublicKey,
) *x509.Certificate {
	a.t.Helper()
	parent := template
	if by != nil {
		parent = by.cert
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func asPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
