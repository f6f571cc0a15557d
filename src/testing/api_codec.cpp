// The decoder: one walk over the body along its type.
#include "src/testing/api_codec.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

// Where the decoder is; a path is only spelled out when there is something to say about it.
struct place {
  const place* parent = nullptr;
  std::string_view key;
  std::size_t index = 0;
  bool is_index = false;
  std::string str() const {
    std::string out = parent ? parent->str() : std::string();
    if (is_index) return out + "[" + std::to_string(index) + "]";
    if (!out.empty() && !key.empty()) out += ".";
    return out.append(key);
  }
};
place member(const place& at, std::string_view key) { return {&at, key, 0, false}; }
place item(const place& at, std::size_t i) { return {&at, {}, i, true}; }

std::string child_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string item_path(const std::string& path, std::size_t i) { return path + "[" + std::to_string(i) + "]"; }

std::string json_word(const json::value& v) {
  switch (v.kind()) {
    case json::kind::string:
      return "string";
    case json::kind::bool_:
      return "bool";
    case json::kind::array:
      return "array";
    case json::kind::object:
      return "object";
    case json::kind::double_:
      return "number " + json::write(v);
    default:
      return "number";
  }
}

std::string go_type(const type& t) {
  switch (t.form) {
    case shape::structure:
      return "v1." + t.name;
    case shape::map:
      return "map[string]" + go_type(*t.element);
    case shape::list:
      return "[]" + go_type(*t.element);
    case shape::any:
      return "interface {}";
    case shape::scalar:
      break;
  }
  switch (t.leaf) {
    case scalar::int32:
      return "int32";
    case scalar::int64:
      return "int64";
    case scalar::boolean:
      return "bool";
    case scalar::number:
      return "float64";
    case scalar::bytes:
      return "[]uint8";
    default:
      return "string";
  }
}

// Walks builtin objects. owner and path are what an error names.
class decoder {
 public:
  explicit decoder(decode_report& r) : report_(r) {}

  outcome<json::object> structure(const type& t, const json::object& in, const place& path) {
    std::vector<const json::value*> given(t.fields.size(), nullptr);
    for (const auto& kv : in) {
      auto it = t.index.find(std::string_view(kv.key()));
      if (it != t.index.end()) {
        given[it->second] = &kv.value();
      } else {
        report_.findings.push_back("unknown field \"" + member(path, kv.key()).str() + "\"");
      }
    }
    json::object out;
    out.reserve(in.size() + 2);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const type_field& f = t.fields[i];
      if (!given[i] || given[i]->is_null()) {
        if (f.always) out.emplace(f.name, zero_value(*f.t));
        continue;
      }
      KUBEOPERA_TRY(json::value v, value(*f.t, *given[i], member(path, f.name), t));
      bool dropped = !f.always && !f.pointer && f.t->form != shape::structure && f.t->form != shape::any && is_zero(v);
      if (!dropped) out.emplace(f.name, std::move(v));
    }
    return out;
  }

 private:
  outcome<json::value> value(const type& t, const json::value& in, const place& path, const type& owner) {
    switch (t.form) {
      case shape::any:
        return in;
      case shape::scalar:
        return leaf(t, in, path, owner);
      case shape::structure: {
        const auto* o = in.if_object();
        if (!o) return mismatch(t, in, path, owner);
        KUBEOPERA_TRY(json::object out, structure(t, *o, path));
        return json::value(std::move(out));
      }
      case shape::map: {
        const auto* o = in.if_object();
        if (!o) return mismatch(t, in, path, owner);
        json::object out;
        std::vector<std::string_view> keys;
        for (const auto& kv : *o) keys.push_back(kv.key());
        std::sort(keys.begin(), keys.end());
        for (auto key : keys) {
          const json::value& given = o->at(key);
          if (given.is_null()) {
            out.emplace(key, zero_value(*t.element));
            continue;
          }
          KUBEOPERA_TRY(json::value v, value(*t.element, given, member(path, key), owner));
          out.emplace(key, std::move(v));
        }
        return json::value(std::move(out));
      }
      case shape::list: {
        const auto* a = in.if_array();
        if (!a) return mismatch(t, in, path, owner);
        json::array out;
        out.reserve(a->size());
        for (std::size_t i = 0; i < a->size(); ++i) {
          KUBEOPERA_TRY(json::value v, value(*t.element, (*a)[i].is_null() ? blank(*t.element) : (*a)[i], item(path, i), owner));
          out.push_back(std::move(v));
        }
        return json::value(std::move(out));
      }
    }
    return in;
  }

  static const json::value& blank(const type& t) {
    static const json::value object(json::object{}), text("");
    return t.form == shape::structure ? object : text;
  }

  outcome<json::value> leaf(const type& t, const json::value& in, const place& path, const type& owner) {
    switch (t.leaf) {
      case scalar::string:
        if (!in.is_string()) return mismatch(t, in, path, owner);
        return in;
      case scalar::boolean:
        if (!in.is_bool()) return mismatch(t, in, path, owner);
        return in;
      case scalar::int32:
      case scalar::int64:
        if (in.is_int64() && (t.leaf == scalar::int64 || in.get_int64() == static_cast<std::int32_t>(in.get_int64()))) return in;
        return mismatch(t, in, path, owner);
      case scalar::number:
        if (!in.is_number()) return mismatch(t, in, path, owner);
        return in;
      case scalar::int_or_string:
        if (in.is_int64() || in.is_string()) return in;
        return mismatch(t, in, path, owner);
      case scalar::quantity: {
        std::string text = in.is_string() ? std::string(json::as_view(in)) : json::write(in);
        std::string q = canonical_quantity(text);
        if (q.empty())
          return bad_request("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        return json::value(q);
      }
      case scalar::time:
      case scalar::micro_time: {
        if (!in.is_string()) return mismatch(t, in, path, owner);
        auto text = json::as_view(in);
        if (auto why = time_problem(text, t.leaf == scalar::micro_time); !why.empty()) return bad_request(why);
        if (auto when = parse_rfc3339(text); when && t.leaf == scalar::time) return json::value(format_rfc3339(*when));
        return in;
      }
      case scalar::bytes:
        return base64(in, path, owner, t);
    }
    return in;
  }

  outcome<json::value> base64(const json::value& in, const place& path, const type& owner, const type& t) {
    if (!in.is_string()) return mismatch(t, in, path, owner);
    auto text = json::as_view(in);
    auto digit = [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
    };
    std::size_t n = text.size();
    while (n > 0 && text.size() - n < 2 && text[n - 1] == '=') --n;
    for (std::size_t i = 0; i < n; ++i) {
      if (!digit(text[i])) return bad_request("illegal base64 data at input byte " + std::to_string(i));
    }
    if (text.size() % 4 != 0) return bad_request("illegal base64 data at input byte " + std::to_string(text.size() / 4 * 4));
    return in;
  }

  refusal mismatch(const type& t, const json::value& in, const place& path, const type& owner) const {
    return bad_request("json: cannot unmarshal " + json_word(in) + " into Go struct field " + owner.name + "." + path.str() +
                       " of type " + go_type(t));
  }

  decode_report& report_;
};

json::value prune_value(const type& t, const json::value& in, const std::string& path, decode_report& report);

json::object prune_object(const type& t, const json::object& in, const std::string& path, decode_report& report) {
  std::vector<std::string_view> keys;
  for (const auto& kv : in) keys.push_back(kv.key());
  std::sort(keys.begin(), keys.end());
  json::object out;
  out.reserve(keys.size());
  for (auto key : keys) {
    const json::value& v = in.at(key);
    if (t.form == shape::any) {
      out.emplace(key, prune_value(t, v, path, report));
    } else if (t.form == shape::map) {
      out.emplace(key, prune_value(*t.element, v, child_path(path, key), report));
    } else if (const auto* f = t.find(key)) {
      out.emplace(key, prune_value(*f->t, v, child_path(path, key), report));
    } else if (t.preserve) {
      static const type free_form;
      out.emplace(key, prune_value(free_form, v, path, report));
    } else {
      report.findings.push_back("unknown field \"" + child_path(path, key) + "\"");
    }
  }
  return out;
}

json::value prune_value(const type& t, const json::value& in, const std::string& path, decode_report& report) {
  if (const auto* o = in.if_object()) {
    return t.form == shape::scalar || t.form == shape::list ? in : json::value(prune_object(t, *o, path, report));
  }
  const auto* a = in.if_array();
  if (!a || (t.form != shape::list && t.form != shape::any)) return in;
  json::array out;
  out.reserve(a->size());
  for (std::size_t i = 0; i < a->size(); ++i) {
    out.push_back(prune_value(t.form == shape::list ? *t.element : t, (*a)[i], item_path(path, i), report));
  }
  return out;
}

}  // namespace

outcome<json::object> decode_builtin(const type& t, const json::object& in, decode_report& report) {
  return decoder(report).structure(t, in, place());
}

json::object prune_custom(const type& t, const json::object& in, decode_report& report) {
  return prune_object(t, in, {}, report);
}

}  // namespace kubeopera::inline v1::testing::api
