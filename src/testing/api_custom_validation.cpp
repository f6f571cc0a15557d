// Validation of custom objects: every violation is found, none hides another.
#include "src/testing/api_crd.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <regex>
#include <set>
#include <unordered_map>

namespace kubeopera::inline v1::testing::api {
namespace {

std::string child(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

double number_of(const json::value& v) {
  if (v.is_int64()) return static_cast<double>(v.get_int64());
  if (v.is_uint64()) return static_cast<double>(v.get_uint64());
  return v.is_double() ? v.get_double() : 0;
}

std::string word_for(const json::value& v) {
  if (v.is_string()) return "string";
  if (v.is_bool()) return "boolean";
  if (v.is_array()) return "array";
  if (v.is_object()) return "object";
  if (v.is_null()) return "null";
  return v.is_double() ? "number" : "integer";
}

bool matches_pattern(const std::string& pattern, std::string_view text) {
  // A pattern that this library cannot read (Go's own extensions) is not enforced.
  static thread_local std::unordered_map<std::string, std::optional<std::regex>> cache;
  auto it = cache.find(pattern);
  if (it == cache.end()) {
    it = cache.emplace(pattern, std::nullopt).first;
    try {
      it->second.emplace(pattern, std::regex::ECMAScript);
    } catch (const std::regex_error&) {
      it->second.reset();
    }
  }
  return !it->second || (text.size() <= 64 * 1024 && std::regex_search(text.begin(), text.end(), *it->second));
}

std::size_t characters(std::string_view s) {
  return static_cast<std::size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

class validator {
 public:
  problems out;

  void value(const json::object& s, const json::value& v, const std::string& path) {
    if (v.is_null() && json::get_bool(s, {"nullable"})) return;
    if (!type_fits(s, v)) {
      std::string want(json::get_string(s, {"type"}));
      if (want.empty()) want = "integer,string";
      bad(path, go_quote(word_for(v)), "must be of type " + want + ": " + go_quote(word_for(v)));
      return;
    }
    if (const auto* all = json::get_array(s, {"enum"}); all && std::find(all->begin(), all->end(), v) == all->end()) {
      std::vector<std::string> words;
      for (const auto& x : *all) words.push_back(x.is_string() ? std::string(json::as_view(x)) : json::write(x));
      out.push_back(unsupported_value(path, json::write(v), words));
    }
    if (v.is_string()) text(s, json::as_view(v), path);
    if (v.is_number()) number(s, v, path);
    if (const auto* a = v.if_array()) list(s, *a, path);
    if (const auto* o = v.if_object()) object(s, *o, path);
    combinations(s, v, path);
  }

 private:
  void bad(const std::string& path, const std::string& shown, const std::string& why) {
    out.push_back(invalid_value(path, shown, path + " in body " + why));
  }

  static bool type_fits(const json::object& s, const json::value& v) {
    if (json::get_bool(s, {"x-kubernetes-int-or-string"})) return v.is_int64() || v.is_string();
    auto want = json::get_string(s, {"type"});
    if (want.empty()) return true;
    auto is = word_for(v);
    return want == is || (want == "number" && is == "integer") ||
           (want == "integer" && v.is_double() &&
            v.get_double() == static_cast<double>(static_cast<std::int64_t>(v.get_double())));
  }

  void text(const json::object& s, std::string_view t, const std::string& path) {
    if (const auto* n = s.if_contains("minLength"); n && characters(t) < number_of(*n)) {
      bad(path, go_quote(t), "should be at least " + json::write(*n) + " chars long");
    }
    if (const auto* n = s.if_contains("maxLength"); n && characters(t) > number_of(*n)) {
      out.push_back({"FieldValueTooLong", path, "Too long: may not be more than " + json::write(*n) + " bytes"});
    }
    std::string pattern(json::get_string(s, {"pattern"}));
    if (!pattern.empty() && !matches_pattern(pattern, t)) bad(path, go_quote(t), "should match '" + pattern + "'");
    if (json::get_string(s, {"format"}) == "date-time" && !parse_rfc3339(t)) {
      bad(path, go_quote(t), "must be of type date-time: " + go_quote(t));
    }
  }

  void number(const json::object& s, const json::value& v, const std::string& path) {
    double x = number_of(v);
    if (const auto* n = s.if_contains("maximum")) {
      bool open = json::get_bool(s, {"exclusiveMaximum"});
      if (open ? x >= number_of(*n) : x > number_of(*n)) {
        bad(path, json::write(v), std::string("should be less than ") + (open ? "" : "or equal to ") + json::write(*n));
      }
    }
    if (const auto* n = s.if_contains("minimum")) {
      bool open = json::get_bool(s, {"exclusiveMinimum"});
      if (open ? x <= number_of(*n) : x < number_of(*n)) {
        bad(path, json::write(v), std::string("should be greater than ") + (open ? "" : "or equal to ") + json::write(*n));
      }
    }
    if (const auto* n = s.if_contains("multipleOf"); n && number_of(*n) != 0) {
      double q = x / number_of(*n);
      if (q != static_cast<double>(static_cast<std::int64_t>(q)))
        bad(path, json::write(v), "should be a multiple of " + json::write(*n));
    }
  }

  void list(const json::object& s, const json::array& a, const std::string& path) {
    if (const auto* n = s.if_contains("maxItems"); n && static_cast<double>(a.size()) > number_of(*n)) {
      out.push_back({"FieldValueTooMany", path,
                     "Too many: " + std::to_string(a.size()) + ": must have at most " + json::write(*n) + " items"});
    }
    if (const auto* n = s.if_contains("minItems"); n && static_cast<double>(a.size()) < number_of(*n)) {
      bad(path, std::to_string(a.size()), "should have at least " + json::write(*n) + " items");
    }
    const auto* items = json::get_object(s, {"items"});
    for (std::size_t i = 0; items && i < a.size(); ++i) value(*items, a[i], path + "[" + std::to_string(i) + "]");
  }

  void object(const json::object& s, const json::object& o, const std::string& path) {
    if (const auto* required = json::get_array(s, {"required"})) {
      for (const auto& r : *required) {
        if (!o.if_contains(json::as_view(r))) out.push_back(required_value(child(path, json::as_view(r))));
      }
    }
    if (const auto* n = s.if_contains("maxProperties"); n && static_cast<double>(o.size()) > number_of(*n)) {
      out.push_back({"FieldValueTooMany", path,
                     "Too many: " + std::to_string(o.size()) + ": must have at most " + json::write(*n) + " items"});
    }
    if (const auto* n = s.if_contains("minProperties"); n && static_cast<double>(o.size()) < number_of(*n)) {
      bad(path, std::to_string(o.size()), "should have at least " + json::write(*n) + " properties");
    }
    const auto* properties = json::get_object(s, {"properties"});
    const auto* extra = json::get_object(s, {"additionalProperties"});
    for (const auto& kv : o) {
      const auto* p = properties ? properties->if_contains(kv.key()) : nullptr;
      if (p && p->is_object()) {
        value(p->get_object(), kv.value(), child(path, kv.key()));
      } else if (extra) {
        value(*extra, kv.value(), child(path, kv.key()));
      }
    }
  }

  static bool accepts(const json::value& schema, const json::value& v) {
    const auto* s = schema.if_object();
    if (!s) return true;
    validator inner;
    inner.value(*s, v, "x");
    return inner.out.empty();
  }

  void combinations(const json::object& s, const json::value& v, const std::string& path) {
    auto fitting = [&](const json::array& all) {
      return std::count_if(all.begin(), all.end(), [&](const auto& x) { return accepts(x, v); });
    };
    if (const auto* all = json::get_array(s, {"allOf"}); all && fitting(*all) != static_cast<std::ptrdiff_t>(all->size())) {
      bad(path, json::write(v), "must validate all the schemas (allOf)");
    }
    if (const auto* any = json::get_array(s, {"anyOf"}); any && fitting(*any) == 0) {
      bad(path, json::write(v), "must validate at least one schema (anyOf)");
    }
    if (const auto* one = json::get_array(s, {"oneOf"}); one && fitting(*one) != 1) {
      bad(path, json::write(v), "must validate one and only one schema (oneOf)");
    }
    if (const auto* no = s.if_contains("not"); no && accepts(*no, v))
      bad(path, json::write(v), "must not validate the schema (not)");
  }
};

// Lists that are sets or maps must not say a thing twice.
void check_lists(const json::object& s, const json::value& v, const std::string& path, problems& out) {
  if (const auto* o = v.if_object()) {
    const auto* properties = json::get_object(s, {"properties"});
    const auto* extra = json::get_object(s, {"additionalProperties"});
    for (const auto& kv : *o) {
      const auto* p = properties ? properties->if_contains(kv.key()) : nullptr;
      const json::object* next = p ? p->if_object() : extra;
      if (next) check_lists(*next, kv.value(), child(path, kv.key()), out);
    }
  }
  const auto* a = v.if_array();
  const auto* items = json::get_object(s, {"items"});
  if (!a) return;
  auto kind = json::get_string(s, {"x-kubernetes-list-type"});
  const auto* keys = json::get_array(s, {"x-kubernetes-list-map-keys"});
  std::set<std::string> seen;
  for (std::size_t i = 0; i < a->size(); ++i) {
    std::string here = path + "[" + std::to_string(i) + "]";
    json::value id = (*a)[i];
    if (kind == "map" && keys && id.is_object()) {
      json::object only;
      for (const auto& k : *keys) {
        if (const auto* x = id.get_object().if_contains(json::as_view(k))) only[json::as_view(k)] = *x;
      }
      id = only;
    }
    bool unique = kind == "map" || kind == "set";
    if (unique && !seen.insert(json::write_canonical(id)).second) out.push_back(duplicate_value(here, json::write_canonical(id)));
    if (items) check_lists(*items, (*a)[i], here, out);
  }
}

}  // namespace

problems validate_custom(const custom_version& version, const json::object& object) {
  if (version.schema.empty()) return {};
  validator v;
  json::object body = object;
  body.erase("metadata");
  const json::object& schema = version.schema;
  v.value(schema, body, {});
  if (v.out.empty()) {
    check_lists(schema, body, {}, v.out);
  } else if (version.rules) {
    v.out.push_back({"FieldValueInvalid", "<nil>",
                     "Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
                     "existing errors to complete validation"});
  }
  return std::move(v.out);
}

}  // namespace kubeopera::inline v1::testing::api
