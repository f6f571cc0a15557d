// Comparing documents of two runs: times, addresses, ages and the order of managedFields do not count; uids, versions, generated
// names and tokens must correspond one to one.
#include "replay.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <regex>

namespace kubeopera::conformance {
namespace {

const std::regex& uuid_or_word() {
  static const std::regex r("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[A-Za-z0-9]+|[^A-Za-z0-9]");
  return r;
}

std::vector<std::string> tokens(const std::string& s) {
  return {std::sregex_token_iterator(s.begin(), s.end(), uuid_or_word()), std::sregex_token_iterator()};
}

bool all_of(const std::string& s, const char* alphabet) { return s.find_first_not_of(alphabet) == std::string::npos; }

// What a server makes up: uids, random suffixes, hashes of templates, event suffixes.
bool generated(const std::string& t) {
  if (t.size() == 36 && t[8] == '-') return true;
  if (t.size() == 16 && all_of(t, "0123456789abcdef")) return true;
  bool length = t.size() == 5 || (t.size() >= 8 && t.size() <= 10);
  return length && all_of(t, "bcdfghjklmnpqrstvwxz2456789");
}

bool number(const std::string& t) { return !t.empty() && all_of(t, "0123456789"); }

// Addresses, hashes of the OpenAPI documents (which are our own) and times of the two runs inside longer texts.
std::string without_addresses(const std::string& s) {
  static const std::regex address("10\\.[0-9]+\\.[0-9]+\\.[0-9]+"), hash("\\?hash=[0-9A-Fa-f]+"),
      time("20[0-9]{2}-(?!01-01)[0-9]{2}-[0-9]{2}T[0-9:]{8}Z");
  std::string out = s.find("10.") == std::string::npos ? s : std::regex_replace(s, address, "<ip>");
  if (out.find("?hash=") != std::string::npos) out = std::regex_replace(out, hash, "?hash=");
  return out.find("T") == std::string::npos ? out : std::regex_replace(out, time, "<time>");
}

bool is_time(const std::string& s) {
  static const std::regex time("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z");
  return s.size() >= 20 && s.size() <= 27 && std::regex_match(s, time);
}
bool of_the_recording(const std::string& s) { return s.rfind("2026-11-30T", 0) == 0; }

bool is_age(const std::string& s) {
  static const std::regex age("([0-9]+[smhdy])+");
  return std::regex_match(s, age);
}

json::value without_order(const json::value& v) {
  const auto* a = v.if_array();
  if (!a) return v;
  std::vector<std::pair<std::string, json::value>> rows;
  for (const auto& e : *a) {
    json::object o = e.is_object() ? e.get_object() : json::object();
    std::string key;
    for (const char* f : {"manager", "operation", "subresource", "apiVersion"})
      key += std::string(json::get_string(o, {f})) + "|";
    bool timed = o.if_contains("time") != nullptr;
    o["time"] = timed;
    rows.emplace_back(key, std::move(o));
  }
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  json::array out;
  for (auto& r : rows) out.push_back(std::move(r.second));
  return out;
}

// Lists of causes come in the order of a Go map; so does the message that joins them.
json::value sorted_causes(const json::value& v) {
  const auto* a = v.if_array();
  if (!a) return v;
  std::vector<std::string> rows;
  for (const auto& e : *a) rows.push_back(json::write_canonical(e));
  std::sort(rows.begin(), rows.end());
  json::array out;
  for (auto& r : rows) out.emplace_back(r);
  return out;
}

std::string sorted_message(const std::string& s) {
  auto at = s.find(" is invalid: [");
  if (at == std::string::npos) return s;
  std::string head = s.substr(0, at), tail = s.substr(at);
  std::sort(tail.begin(), tail.end());
  return head + tail;
}

}  // namespace

class comparer {
 public:
  explicit comparer(translation& t) : t_(t) {}
  std::vector<std::string> out;

  void value(const json::value& want, const json::value& is, const std::string& path) {
    if (want.is_object() && is.is_object()) return object(want.get_object(), is.get_object(), path);
    if (want.is_array() && is.is_array()) return array(want.get_array(), is.get_array(), path);
    if (want.is_string() && is.is_string()) {
      return text(std::string(json::as_view(want)), std::string(json::as_view(is)), path);
    }
    if (want != is) differs(path, json::write(want), json::write(is));
  }

  void text(const std::string& recorded, const std::string& actual, const std::string& path) {
    if (recorded == actual) return;
    if (is_time(recorded) && is_time(actual) && of_the_recording(recorded)) return;
    std::string want = without_addresses(recorded), is = without_addresses(actual);
    if (path.find(".cells[") != std::string::npos && is_age(want) && is_age(is)) return;
    if (!unify(want, is)) differs(path, recorded, actual);
  }

 private:
  void differs(const std::string& path, const std::string& want, const std::string& is) {
    if (out.size() < 20) out.push_back(path + ": recorded " + want.substr(0, 600) + ", is " + is.substr(0, 600));
  }

  bool bind(std::map<std::string, std::string>& map, const std::string& want, const std::string& is) {
    auto [it, fresh] = map.emplace(want, is);
    return fresh || it->second == is;
  }

  // Equal but for tokens that correspond.
  bool unify(const std::string& want, const std::string& is) {
    auto a = tokens(want), b = tokens(is);
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      if (number(a[i]) && number(b[i])) {
        auto it = t_.versions_.find(a[i]);
        bool version = it == t_.versions_.end() ? want.find("esource version") != std::string::npos : it->second == b[i];
        if (!version) return false;
        continue;
      }
      if (!generated(a[i]) || !generated(b[i]) || !bind(t_.words_, a[i], b[i])) return false;
    }
    return true;
  }

  void object(const json::object& want, const json::object& is, const std::string& path) {
    bool list = want.if_contains("items") || want.if_contains("rows");
    for (const auto& kv : want) {
      const json::value* other = find(is, std::string(kv.key()));
      std::string here = path + "." + std::string(kv.key());
      if (!other) {
        differs(here, json::write(kv.value()), "(absent)");
        continue;
      }
      member(kv.key(), kv.value(), *other, here, list);
    }
    for (const auto& kv : is) {
      bool known =
          std::any_of(want.begin(), want.end(), [&](const auto& w) { return find(is, std::string(w.key())) == &kv.value(); });
      if (!known) differs(path + "." + std::string(kv.key()), "(absent)", json::write(kv.value()));
    }
  }

  // Keys of managed fields hold names and uids too.
  const json::value* find(const json::object& is, const std::string& key) {
    if (const auto* v = is.if_contains(key)) return v;
    if (key.rfind("k:", 0) != 0 && key.rfind("v:", 0) != 0) return nullptr;
    for (const auto& kv : is) {
      if (kv.key().starts_with(key.substr(0, 2)) && unify(without_addresses(key), without_addresses(std::string(kv.key())))) {
        return &kv.value();
      }
    }
    return nullptr;
  }

  void member(std::string_view key, const json::value& want, const json::value& is, const std::string& path, bool list) {
    if (key == "managedFields") return value(without_order(want), without_order(is), path);
    if (key == "causes") return value(sorted_causes(want), sorted_causes(is), path);
    if (key == "fieldsType" || key == "selfLink") return;
    if (list && key == "metadata" && want.is_object() && is.is_object())
      return list_meta(want.get_object(), is.get_object(), path);
    if (want.is_string() && is.is_string()) {
      std::string w(json::as_view(want)), i(json::as_view(is));
      if (key == "resourceVersion" && number(w) && number(i)) {
        if (!bind(t_.versions_, w, i)) differs(path, w + " (which was " + t_.versions_[w] + ")", i);
        return;
      }
      if (key == "continue" && !w.empty() && !i.empty()) {
        t_.words_[w] = i;
        return;
      }
      if (key == "message") return text(sorted_message(w), sorted_message(i), path);
      if (key == "token" && w.rfind("<", 0) == 0) return;
      if (key == "goVersion" || key == "compiler" || key == "serverAddress") return;
    }
    value(want, is, path);
  }

  // A list's version is the counter's, which other writers move too: it is bound, not compared.
  void list_meta(const json::object& want, const json::object& is, const std::string& path) {
    for (const auto& kv : want) {
      const auto* other = is.if_contains(kv.key());
      if (!other) {
        differs(path + "." + std::string(kv.key()), json::write(kv.value()), "(absent)");
      } else if (kv.key() == "resourceVersion") {
        t_.versions_.emplace(std::string(json::as_view(kv.value())), std::string(json::as_view(*other)));
      } else {
        member(kv.key(), kv.value(), *other, path + "." + std::string(kv.key()), false);
      }
    }
    for (const auto& kv : is) {
      if (!want.if_contains(kv.key())) differs(path + "." + std::string(kv.key()), "(absent)", json::write(kv.value()));
    }
  }

  void array(const json::array& want, const json::array& is, const std::string& path) {
    if (want.size() != is.size()) {
      return differs(path, std::to_string(want.size()) + " items " + json::write(json::value(want)),
                     std::to_string(is.size()) + " items " + json::write(json::value(is)));
    }
    for (std::size_t i = 0; i < want.size(); ++i) value(want[i], is[i], path + "[" + std::to_string(i) + "]");
  }

  translation& t_;
};

std::vector<std::string> translation::compare(const json::value& recorded, const json::value& actual) {
  translation before = *this;
  comparer c(*this);
  c.value(recorded, actual, "");
  if (!c.out.empty()) *this = std::move(before);  // what differs binds nothing
  return std::move(c.out);
}

std::vector<std::string> translation::compare_text(const std::string& recorded, const std::string& actual) {
  comparer c(*this);
  c.text(recorded, actual, "text");
  return std::move(c.out);
}

namespace {
std::string translated(const std::string& s, const std::map<std::string, std::string>& words) {
  if (auto it = words.find(s); it != words.end()) return it->second;
  std::string out;
  for (const auto& t : tokens(s)) {
    auto it = words.find(t);
    out += it == words.end() ? t : it->second;
  }
  return out;
}
}  // namespace

std::string translation::path(const std::string& recorded) const {
  auto mark = recorded.find('?');
  std::string out = translated(recorded.substr(0, mark), words_);
  if (mark == std::string::npos) return out;
  std::string query = recorded.substr(mark + 1);
  for (char glue = '?'; !query.empty(); glue = '&') {
    auto end = std::min(query.find('&'), query.size());
    std::string pair = query.substr(0, end);
    query.erase(0, std::min(end + 1, query.size()));
    auto eq = pair.find('=');
    std::string key = pair.substr(0, eq), v = eq == std::string::npos ? "" : pair.substr(eq + 1);
    if (key == "continue") v = translated(v, words_);
    if (key == "timeoutSeconds") v = "1";
    if (key == "resourceVersion" && number(v)) {
      // The newest version known that is not later; versions grow with time in both runs.
      auto it = versions_.find(v);
      if (it != versions_.end()) {
        v = it->second;
      } else if (v.size() < 6 && v != "0" && v != "1") {
        std::uint64_t best = 0, wanted = std::stoull(v);
        std::string found = "1";
        for (const auto& [was, is] : versions_) {
          std::uint64_t n = std::stoull(was);
          if (n <= wanted && n > best) {
            best = n;
            found = is;
          }
        }
        v = found;
      }
    }
    out += glue + key + "=" + v;
  }
  return out;
}

json::value translation::body(const json::value& recorded) const {
  if (const auto* o = recorded.if_object()) {
    json::object out;
    for (const auto& kv : *o) {
      auto it = versions_.find(std::string(json::as_view(kv.value())));
      bool version = kv.key() == "resourceVersion" && it != versions_.end();
      out.emplace(kv.key(), version ? json::value(it->second) : body(kv.value()));
    }
    return out;
  }
  if (const auto* a = recorded.if_array()) {
    json::array out;
    for (const auto& v : *a) out.push_back(body(v));
    return out;
  }
  if (!recorded.is_string()) return recorded;
  return json::value(translated(std::string(json::as_view(recorded)), words_));
}

}  // namespace kubeopera::conformance
