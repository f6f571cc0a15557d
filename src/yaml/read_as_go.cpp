// The lax reader: what go.yaml.in/yaml/v2 followed by sigs.k8s.io/yaml's conversion to JSON makes of a body.
#include "src/yaml/parse.hpp"
#include "src/yaml/scalar.hpp"
#include "src/yaml/span.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>

#include <unordered_map>

namespace kubeopera::inline v1::yaml {
namespace {

constexpr std::size_t max_bytes = 3 << 20;
constexpr std::size_t max_nodes = 400'000;
constexpr std::size_t max_depth = 400;
constexpr std::string_view core = "tag:yaml.org,2002:";

struct built {
  json::value value;
  std::size_t nodes = 1;
};

struct frame {
  built container;
  std::string key;
  YAML::anchor_t anchor = YAML::NullAnchor;
  bool is_map = false;
  bool has_key = false;
  bool merging = false;
};

std::string decode_base64(std::string_view text) {
  std::string out;
  unsigned bits = 0;
  int have = 0;
  for (char c : text) {
    int v = c >= 'A' && c <= 'Z'   ? c - 'A'
            : c >= 'a' && c <= 'z' ? c - 'a' + 26
            : c >= '0' && c <= '9' ? c - '0' + 52
            : c == '+'             ? 62
            : c == '/'             ? 63
                                   : -1;
    if (v < 0) continue;
    bits = (bits << 6) | static_cast<unsigned>(v);
    have += 6;
    if (have >= 8) {
      have -= 8;
      out.push_back(static_cast<char>((bits >> have) & 0xFF));
    }
  }
  return out;
}

// yaml-cpp makes a lone byte of the escapes \N and \_.
std::string repaired(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    bool lone = (c == 0x85 || c == 0xA0) && (i == 0 || (static_cast<unsigned char>(text[i - 1]) < 0x80));
    if (lone) out.push_back('\xC2');
    out.push_back(text[i]);
  }
  return is_utf8(out) ? out : std::string();
}

class go_handler final : public YAML::EventHandler {
 public:
  go_handler(std::string_view text, std::vector<std::string>* duplicates) : text_(text), duplicates_(duplicates) {}

  json::value document;
  bool done = false;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override { done = true; }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { scalar_value(mark, anchor, nullptr); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto it = anchors_.find(anchor);
    if (it == anchors_.end()) fail(mark, "anchor value contains itself");
    if (in_key()) return key(mark, it->second.value);
    count(mark, it->second.nodes);
    add(mark, it->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    if (!locate_scalar(text_, static_cast<std::size_t>(mark.pos), text)) fail(mark, "found unexpected end of stream");
    if (in_key() && tag == "?" && text == "<<") {
      stack_.back().has_key = stack_.back().merging = true;
      return;
    }
    if (tag == "?") {
      auto v = resolve_go(text);
      if (!v) fail(mark, "json: unsupported value: " + text);
      return scalar_value(mark, anchor, std::move(*v));
    }
    if (tag == std::string(core) + "binary") return scalar_value(mark, anchor, json::value(decode_base64(text)));
    bool typed = tag.starts_with(core) && tag != std::string(core) + "str";
    if (typed) {
      auto v = resolve_go(text);
      if (!v) fail(mark, "json: unsupported value: " + text);
      return scalar_value(mark, anchor, std::move(*v));
    }
    scalar_value(mark, anchor, json::value(repaired(text)));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, anchor, false);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, anchor, true);
  }
  void OnMapEnd() override { close(); }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    throw stop{error(errc::invalid_argument, "MalformedYaml",
                     "error converting YAML to JSON: yaml: line " + std::to_string(mark.line + 1) + ": " + what)};
  }
  bool in_key() const { return !stack_.empty() && stack_.back().is_map && !stack_.back().has_key; }
  void count(const YAML::Mark& mark, std::size_t more) {
    nodes_ += more;
    if (nodes_ > max_nodes)
      throw stop{error(errc::invalid_argument, "TooManyNodes",
                       "error converting YAML to JSON: yaml: line " + std::to_string(mark.line + 1) +
                           ": document contains excessive aliasing")};
  }
  void scalar_value(const YAML::Mark& mark, YAML::anchor_t anchor, json::value v) {
    count(mark, 1);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = built{v, 1};
    if (in_key()) return key(mark, v);
    add(mark, built{std::move(v), 1});
  }
  void open(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_map) {
    count(mark, 1);
    if (in_key()) fail(mark, "invalid map key");
    if (stack_.size() >= max_depth) throw stop{error(errc::invalid_argument, "TooDeep", "exceeded max depth")};
    frame f;
    if (is_map)
      f.container.value.emplace_object();
    else
      f.container.value.emplace_array();
    f.anchor = anchor;
    f.is_map = is_map;
    stack_.push_back(std::move(f));
    last_ = mark;
  }
  void close() {
    frame f = std::move(stack_.back());
    stack_.pop_back();
    if (f.anchor != YAML::NullAnchor) anchors_[f.anchor] = f.container;
    add(last_, std::move(f.container));
  }
  void key(const YAML::Mark& mark, const json::value& v) {
    auto& f = stack_.back();
    if (v.is_string())
      f.key = std::string(v.get_string());
    else if (v.is_bool() || v.is_number())
      f.key = json::write(v);
    else
      fail(mark, "unsupported map key");
    if (duplicates_ && f.container.value.get_object().contains(f.key) && !merged_.contains(f.key))
      duplicates_->push_back("line " + std::to_string(mark.line + 1) + ": key \"" + f.key + "\" already set in map");
    f.has_key = true;
  }
  void add(const YAML::Mark& mark, built b) {
    if (stack_.empty()) {
      document = std::move(b.value);
      return;
    }
    auto& f = stack_.back();
    f.container.nodes += b.nodes;
    if (!f.is_map) {
      f.container.value.get_array().push_back(std::move(b.value));
      return;
    }
    f.has_key = false;
    if (f.merging) {
      f.merging = false;
      return merge(mark, f.container.value.get_object(), b.value);
    }
    f.container.value.get_object().insert_or_assign(f.key, std::move(b.value));
  }
  void merge(const YAML::Mark& mark, json::object& into, const json::value& from) {
    if (from.is_object()) {
      for (const auto& [k, v] : from.get_object()) {
        into.insert_or_assign(k, v);
        merged_.insert({std::string(k), true});
      }
      return;
    }
    if (!from.is_array()) fail(mark, "map merge requires map or sequence of maps as the value");
    const auto& list = from.get_array();
    for (auto it = list.rbegin(); it != list.rend(); ++it) {
      if (!it->is_object()) fail(mark, "map merge requires map or sequence of maps as the value");
      merge(mark, into, *it);
    }
  }

  std::string_view text_;
  std::vector<std::string>* duplicates_;
  std::size_t nodes_ = 0;
  std::vector<frame> stack_;
  std::unordered_map<YAML::anchor_t, built> anchors_;
  std::unordered_map<std::string, bool> merged_;
  YAML::Mark last_;
};

}  // namespace

result<json::value> read_as_go(std::string_view text, std::vector<std::string>* duplicates) {
  if (text.size() > max_bytes) return error(errc::too_large, "TooLarge", "the body is over 3 MiB");
  auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    json::limits lim;
    lim.max_bytes = max_bytes;
    lim.max_nodes = max_nodes;
    lim.max_depth = max_depth;
    if (auto v = json::read(text, lim)) return v;
  }
  go_handler handler(text, duplicates);
  KUBEOPERA_TRY(auto documents, parse(text, handler, [] { return std::string(); }, [&] { return !handler.done; }));
  if (documents == 0) return json::value(nullptr);
  return std::move(handler.document);
}

}  // namespace kubeopera::inline v1::yaml
