// The same token verified and its claims read with golang-jwt, as a Go service does it. Run: go test -bench . -benchmem
package golang_jwt

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var key = []byte("Tq7wq0kqX2mJ3s9dL5vB8nC1zR4yH6uE")

type claims struct {
	TenantID      string   `json:"tenant_id"`
	Email         string   `json:"email"`
	Roles         []string `json:"roles"`
	Permissions   []string `json:"permissions"`
	PlatformAdmin bool     `json:"platform_admin"`
	TokenUse      string   `json:"token_use"`
	jwt.RegisteredClaims
}

func sampleToken(b *testing.B) string {
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		TenantID:    "acme-corp",
		Email:       "dev@acme.example",
		Roles:       []string{"developer", "viewer"},
		Permissions: []string{"apps:read", "apps:write", "cloudspaces:read", "vclusters:read", "logs:read", "config:write"},
		TokenUse:    "access",
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    "kubeopera",
			Audience:  jwt.ClaimStrings{"kubeopera"},
			Subject:   "0193a5b2-6f7e-7c3d-9b1a-2f4c8d5e6a70",
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour)),
		},
	})
	text, err := token.SignedString(key)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func BenchmarkVerify(b *testing.B) {
	text := sampleToken(b)
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithIssuer("kubeopera"), jwt.WithAudience("kubeopera"),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(time.Minute))
	get := func(*jwt.Token) (any, error) { return key, nil }
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		var c claims
		if _, err := parser.ParseWithClaims(text, &c, get); err != nil || len(c.Permissions) != 6 || c.TokenUse != "access" {
			b.Fatal(err)
		}
	}
}
