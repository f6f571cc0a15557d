// The grammar of label selectors: a lexer and a parser with the words of apimachinery in their errors.
#include "src/testing/api_selector.hpp"

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::api {
namespace {

struct token {
  enum kind { end, word, comma, open, close, equal, double_equal, not_equal, bang, greater, less, unknown } what = end;
  std::string text;
};

std::vector<token> lex(std::string_view s) {
  std::vector<token> out;
  for (std::size_t i = 0; i < s.size();) {
    char c = s[i];
    auto one = [&](token::kind k) {
      out.push_back({k, std::string(1, c)});
      ++i;
    };
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++i;
    } else if (c == ',') {
      one(token::comma);
    } else if (c == '(') {
      one(token::open);
    } else if (c == ')') {
      one(token::close);
    } else if (c == '>') {
      one(token::greater);
    } else if (c == '<') {
      one(token::less);
    } else if (c == '=' || c == '!') {
      bool two = i + 1 < s.size() && s[i + 1] == '=';
      if (two) {
        out.push_back({c == '=' ? token::double_equal : token::not_equal, std::string(s.substr(i, 2))});
        i += 2;
      } else {
        one(c == '=' ? token::equal : token::bang);
      }
    } else {
      auto stop = std::min(s.find_first_of(" \t\r\n,()><=!", i), s.size());
      out.push_back({token::word, std::string(s.substr(i, stop - i))});
      i = stop;
    }
  }
  out.push_back({});
  return out;
}

refusal expected(const token& found, std::string_view what) {
  return bad_request("unable to parse requirement: found '" + found.text + "', expected: " + std::string(what));
}

bool label_name_ok(std::string_view s) noexcept {
  if (s.empty() || s.size() > 63) return false;
  auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  if (!alnum(s.front()) || !alnum(s.back())) return false;
  return std::all_of(s.begin(), s.end(), [&](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool label_key_ok(std::string_view s) noexcept {
  auto slash = s.find('/');
  return slash == std::string_view::npos ? label_name_ok(s) : slash > 0 && slash <= 253 && label_name_ok(s.substr(slash + 1));
}

using requirement = label_selector::requirement;

class parser {
 public:
  explicit parser(std::string_view text) : tokens_(lex(text)) {}

  outcome<std::vector<requirement>> run() {
    std::vector<requirement> out;
    if (peek().what == token::end) return out;
    for (;;) {
      KUBEOPERA_TRY(auto r, one());
      out.push_back(std::move(r));
      if (peek().what == token::end) break;
      if (peek().what != token::comma) return bad_request("found '" + peek().text + "', expected: ',' or 'end of string'");
      ++at_;
      if (peek().what == token::end) break;
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return out;
  }

 private:
  const token& peek() const noexcept { return tokens_[at_]; }
  token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }

  outcome<requirement> one() {
    requirement r;
    bool negated = peek().what == token::bang;
    if (negated) take();
    token key = take();
    if (key.what != token::word) return expected(key, "identifier");
    if (!label_key_ok(key.text)) {
      return bad_request("unable to parse requirement: <nil>: Invalid value: " + go_quote(key.text) +
                         ": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                         "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                         "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')");
    }
    r.key = key.text;
    if (peek().what == token::end || peek().what == token::comma) {
      r.what = negated ? label_selector::op::absent : label_selector::op::exists;
      return r;
    }
    if (negated) return expected(peek(), "',' or 'end of string'");
    return operation(std::move(r));
  }

  outcome<requirement> operation(requirement r) {
    token t = take();
    switch (t.what) {
      case token::equal:
      case token::double_equal:
      case token::not_equal:
        r.what = t.what == token::not_equal ? label_selector::op::not_in : label_selector::op::in;
        return exact(std::move(r));
      case token::greater:
      case token::less:
        r.what = t.what == token::greater ? label_selector::op::greater : label_selector::op::less;
        return exact(std::move(r));
      case token::word:
        if (t.text == "in" || t.text == "notin") {
          r.what = t.text == "in" ? label_selector::op::in : label_selector::op::not_in;
          return set(std::move(r));
        }
        [[fallthrough]];
      default:
        return expected(t, "in, notin, =, ==, !=, gt, lt");
    }
  }

  outcome<requirement> exact(requirement r) {
    if (peek().what == token::end || peek().what == token::comma) {
      r.values.emplace_back();
      return r;
    }
    token v = take();
    if (v.what != token::word) return expected(v, "identifier");
    if (!label_name_ok(v.text))
      return bad_request("unable to parse requirement: values[0][" + r.key + "]: Invalid value: " + go_quote(v.text));
    r.values.push_back(v.text);
    return r;
  }

  outcome<requirement> set(requirement r) {
    token t = take();
    if (t.what != token::open) return expected(t, "'('");
    for (;;) {
      t = take();
      if (t.what == token::close) break;
      if (t.what == token::comma) continue;
      if (t.what != token::word) return expected(t, "',' or ')'");
      r.values.push_back(t.text);
    }
    if (r.values.empty()) r.values.emplace_back();
    return r;
  }

  std::vector<token> tokens_;
  std::size_t at_ = 0;
};

const std::string* value_of(const string_pairs& labels, std::string_view key) noexcept {
  auto it = std::lower_bound(labels.begin(), labels.end(), key, [](const auto& p, std::string_view k) { return p.first < k; });
  return it != labels.end() && it->first == key ? &it->second : nullptr;
}

bool compare_numbers(const std::string& a, const std::string& b, bool greater) noexcept {
  std::int64_t x = 0, y = 0;
  auto read = [](const std::string& s, std::int64_t& out) {
    auto [p, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
    return ec == std::errc() && p == s.data() + s.size();
  };
  return read(a, x) && read(b, y) && (greater ? x > y : x < y);
}

bool satisfied(const requirement& r, const std::string* v) noexcept {
  auto listed = [&] { return std::find(r.values.begin(), r.values.end(), *v) != r.values.end(); };
  switch (r.what) {
    case label_selector::op::in:
      return v && listed();
    case label_selector::op::not_in:
      return !v || !listed();
    case label_selector::op::exists:
      return v;
    case label_selector::op::absent:
      return !v;
    case label_selector::op::greater:
      return v && compare_numbers(*v, r.values[0], true);
    case label_selector::op::less:
      return v && compare_numbers(*v, r.values[0], false);
  }
  return false;
}

}  // namespace

outcome<label_selector> label_selector::parse(std::string_view text) {
  KUBEOPERA_TRY(auto all, parser(text).run());
  label_selector out;
  out.all_ = std::move(all);
  return out;
}

label_selector label_selector::from_object(const json::object* o) {
  label_selector out;
  if (!o) return out;
  if (const auto* m = json::get_object(*o, {"matchLabels"})) {
    for (const auto& kv : *m) out.all_.push_back({std::string(kv.key()), op::in, {std::string(json::as_view(kv.value()))}});
  }
  if (const auto* a = json::get_array(*o, {"matchExpressions"})) {
    for (const auto& e : *a) {
      const auto* x = e.if_object();
      if (!x) continue;
      requirement r;
      r.key = json::get_string(*x, {"key"});
      auto word = json::get_string(*x, {"operator"});
      r.what = word == "In" ? op::in : word == "NotIn" ? op::not_in : word == "Exists" ? op::exists : op::absent;
      if (const auto* vs = json::get_array(*x, {"values"})) {
        for (const auto& v : *vs) r.values.emplace_back(json::as_view(v));
      }
      out.all_.push_back(std::move(r));
    }
  }
  return out;
}

bool label_selector::matches(const string_pairs& labels) const noexcept {
  return std::all_of(all_.begin(), all_.end(), [&](const requirement& r) { return satisfied(r, value_of(labels, r.key)); });
}

outcome<field_selector> field_selector::parse(std::string_view text) {
  field_selector out;
  while (!text.empty()) {
    auto comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (part.empty()) continue;
    term t;
    auto at = part.find_first_of("!=");
    bool sound = at != std::string_view::npos && (part[at] == '=' || (at + 1 < part.size() && part[at + 1] == '='));
    if (!sound) return bad_request("invalid selector: '" + std::string(part) + "'; can't understand '" + std::string(part) + "'");
    t.equal = part[at] == '=';
    t.field = part.substr(0, at);
    std::size_t skip = !t.equal || (at + 1 < part.size() && part[at + 1] == '=') ? 2 : 1;
    t.value = part.substr(at + skip);
    out.terms_.push_back(std::move(t));
  }
  return out;
}

std::string format_label_selector(const json::object* selector) {
  std::vector<std::string> parts;
  if (selector) {
    if (const auto* m = json::get_object(*selector, {"matchLabels"})) {
      for (const auto& kv : *m) parts.push_back(std::string(kv.key()) + "=" + std::string(json::as_view(kv.value())));
    }
    if (const auto* a = json::get_array(*selector, {"matchExpressions"})) {
      for (const auto& e : *a) {
        const auto* x = e.if_object();
        if (!x) continue;
        std::string key(json::get_string(*x, {"key"}));
        auto word = json::get_string(*x, {"operator"});
        std::string values;
        if (const auto* vs = json::get_array(*x, {"values"})) {
          for (const auto& v : *vs) values += (values.empty() ? "" : ",") + std::string(json::as_view(v));
        }
        if (word == "In") parts.push_back(key + " in (" + values + ")");
        if (word == "NotIn") parts.push_back(key + " notin (" + values + ")");
        if (word == "Exists") parts.push_back(key);
        if (word == "DoesNotExist") parts.push_back("!" + key);
      }
    }
  }
  std::sort(parts.begin(), parts.end());
  std::string out;
  for (const auto& p : parts) out += (out.empty() ? "" : ",") + p;
  return out;
}

}  // namespace kubeopera::inline v1::testing::api
