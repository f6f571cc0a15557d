// One pass over a plain payload, eight bytes at a time inside strings.
#include "src/crypto/claims_reader.hpp"

#include <bit>
#include <cstring>

namespace kubeopera::inline v1::crypto {

namespace {

// A bit for each claim; seen twice is not plain.
enum claim : unsigned {
  iss,
  aud,
  token_use,
  sub,
  tenant_id,
  name,
  email,
  jti,
  roles,
  permissions,
  platform_admin,
  iat,
  nbf,
  exp,
  unknown
};

claim claim_of(std::string_view key) {
  switch (key.size()) {
    case 3:
      return key == "sub"   ? sub
             : key == "exp" ? exp
             : key == "iat" ? iat
             : key == "iss" ? iss
             : key == "aud" ? aud
             : key == "jti" ? jti
             : key == "nbf" ? nbf
                            : unknown;
    case 4:
      return key == "name" ? name : unknown;
    case 5:
      return key == "roles" ? roles : key == "email" ? email : unknown;
    case 9:
      return key == "tenant_id" ? tenant_id : key == "token_use" ? token_use : unknown;
    case 11:
      return key == "permissions" ? permissions : unknown;
    case 14:
      return key == "platform_admin" ? platform_admin : unknown;
    default:
      return unknown;
  }
}

// Top bit of each byte that ends or spoils a plain string: a quote, a backslash, a control character, anything not ASCII.
std::uint64_t special_bytes(std::uint64_t v) {
  constexpr std::uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
  auto equal_to = [&](unsigned char c) {
    auto x = v ^ (ones * c);
    return (x - ones) & ~x;
  };
  auto control = v - ones * 0x20;
  return (v | control | equal_to('"') | equal_to('\\')) & tops;
}

class reader {
 public:
  explicit reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool done() const { return at_ == end_; }

  bool string(std::string_view& out) {
    if (!take('"')) return false;
    const char* start = at_;
    for (; at_ < end_; at_ += 8) {
      std::uint64_t block = 0;
      std::memcpy(&block, at_, 8);
      auto special = special_bytes(block);
      if (special == 0) continue;
      at_ += std::countr_zero(special) / 8;
      if (at_ >= end_ || *at_ != '"') return false;
      out = {start, static_cast<std::size_t>(at_ - start)};
      ++at_;
      return true;
    }
    return false;
  }

  // A positive integer without leading zeros, as a time has it.
  bool time(std::int64_t& out) {
    out = 0;
    const char* start = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9' && at_ - start < 12) out = out * 10 + (*at_++ - '0');
    return at_ > start && *start != '0' && out <= max_token_time;
  }

  bool boolean(bool& out) {
    std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    out = rest.starts_with("true");
    if (!out && !rest.starts_with("false")) return false;
    at_ += out ? 4 : 5;
    return true;
  }

  // Keeps the strings that are there already, and so their memory.
  bool strings(std::vector<std::string>& out) {
    if (!take('[')) return false;
    std::size_t count = 0;
    if (!take(']')) {
      do {
        std::string_view item;
        if (!string(item)) return false;
        if (count < out.size())
          out[count] = item;
        else
          out.emplace_back(item);
        ++count;
      } while (take(','));
      if (!take(']')) return false;
    }
    out.resize(count);
    return true;
  }

 private:
  const char* at_;
  const char* end_;
};

struct times {
  std::int64_t exp = 0, iat = 0, nbf = 0;
};

bool text(reader& in, std::string& out) {
  std::string_view value;
  if (!in.string(value)) return false;
  out = value;
  return true;
}

bool matches(reader& in, std::string_view wanted) {
  std::string_view value;
  return in.string(value) && value == wanted;
}

bool read_value(claim which, reader& in, const jwt_options& options, times& t, claims& into) {
  switch (which) {
    case iss:
      return matches(in, options.issuer);
    case aud:
      return matches(in, options.audience);
    case token_use:
      return matches(in, options.token_use);
    case sub:
      return text(in, into.sub) && !into.sub.empty();
    case tenant_id:
      return text(in, into.tenant_id);
    case name:
      return text(in, into.name);
    case email:
      return text(in, into.email);
    case jti:
      return text(in, into.jti);
    case roles:
      return in.strings(into.roles);
    case permissions:
      return in.strings(into.permissions);
    case platform_admin:
      return in.boolean(into.platform_admin);
    case iat:
      return in.time(t.iat);
    case nbf:
      return in.time(t.nbf);
    case exp:
      return in.time(t.exp);
    case unknown:
      return false;
  }
  return false;
}

// into may hold another token's claims: what this one lacks is emptied.
void empty_unseen(unsigned seen, claims& into) {
  auto lacks = [seen](claim c) { return !(seen >> c & 1); };
  if (lacks(tenant_id)) into.tenant_id.clear();
  if (lacks(name)) into.name.clear();
  if (lacks(email)) into.email.clear();
  if (lacks(jti)) into.jti.clear();
  if (lacks(roles)) into.roles.clear();
  if (lacks(permissions)) into.permissions.clear();
  if (lacks(platform_admin)) into.platform_admin = false;
}

}  // namespace

bool read_plain_claims(std::string_view payload, const jwt_options& options, std::int64_t now, claims& into) {
  reader in(payload);
  unsigned seen = 0;
  times t;
  if (!in.take('{')) return false;
  do {
    std::string_view key;
    if (!in.string(key) || !in.take(':')) return false;
    auto which = claim_of(key);
    if (which == unknown || seen >> which & 1) return false;
    seen |= 1u << which;
    if (!read_value(which, in, options, t, into)) return false;
  } while (in.take(','));
  if (!in.take('}') || !in.done()) return false;
  constexpr unsigned required = 1u << iss | 1u << aud | 1u << token_use | 1u << sub | 1u << exp;
  if ((seen & required) != required) return false;
  auto leeway = options.leeway.count();
  if (t.exp + leeway <= now || t.iat - leeway > now || t.nbf - leeway > now) return false;
  empty_unseen(seen, into);
  into.exp = system_time(std::chrono::seconds(t.exp));
  into.iat = system_time(std::chrono::seconds(t.iat));
  return true;
}

}  // namespace kubeopera::inline v1::crypto
