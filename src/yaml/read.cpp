// The closed-world reader: yaml-cpp's events, each checked before anything is built from it.
#include "src/yaml/parse.hpp"
#include "src/yaml/scalar.hpp"
#include "src/yaml/span.hpp"

#include <kubeopera/yaml/read.hpp>

#include <algorithm>
#include <iterator>

namespace kubeopera::inline v1::yaml {
namespace {

struct frame {
  json::value container;
  std::string key;
  bool is_map = false;
  bool has_key = false;
  bool flow = false;
  int key_line = -1;
  int key_column = -1;  ///< of a block map's key, or of the question mark before it
};

class strict_handler final : public YAML::EventHandler {
 public:
  strict_handler(std::string_view text, const limits& lim, bool one_document) : text_(text), lim_(lim), one_(one_document) {}

  std::vector<json::value> documents;

  std::string pointer() const {
    std::string out;
    for (const auto& f : stack_) {
      if (!f.is_map)
        out = json::pointer_step(out, f.container.get_array().size());
      else if (f.has_key)
        out = json::pointer_step(out, f.key);
    }
    return out;
  }

  /// Quoted and block scalars in the order of the text: where tabs are content.
  const std::vector<span>& opaque() const { return opaque_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++count_ == 1) return;
    if (one_) fail(mark, "SecondDocument", "text after the document; only one document is taken");
    if (!starts(mark, "---")) fail(mark, "MalformedYaml", "text after the document; the next one begins with ---");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    node(mark, anchor);
    if (stack_.empty() && starts(mark, "...")) fail(mark, "MalformedYaml", "there is no document before ...");
    if (starts(mark, "!")) fail(mark, "Tag", "a tag without a value is not taken");
    if (in_key()) fail(mark, "KeyNotString", "a key is missing or null; quote it if it is meant as text");
    if (!stack_.empty() && stack_.back().flow) check_place(mark);
    add(nullptr);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "Alias", "aliases are not taken; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    node(mark, anchor);
    bool quoted = tag == "!" && !starts(mark, "!");
    auto where = locate_scalar(text_, static_cast<std::size_t>(mark.pos), text);
    if (!where) fail(mark, "MalformedYaml", "the quoted text has no end");
    // yaml-cpp makes a lone byte of the escapes \N and \_.
    if (where->style == scalar_style::quoted && !is_utf8(text))
      fail(mark, "BadCharacter", "the escapes \\N and \\_ are not taken; write \\x85 and \\xa0");
    if (where->style == scalar_style::block && !is_block_header(text_, where->begin))
      fail(mark, "MalformedYaml", "the line of a block's | or > has more on it");
    if (where->style != scalar_style::plain) opaque_.push_back(*where);
    bool is_text = quoted || tag == "tag:yaml.org,2002:str";
    if (!is_text && tag != "?") fail(mark, "Tag", "the tag " + tag + " is not taken; only !!str, !!map and !!seq are");
    if (in_key()) return key(mark, text, is_text, *where);
    check_place(mark);
    add(is_text ? json::value(text) : plain(mark, text));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, "tag:yaml.org,2002:seq", anchor, false, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, "tag:yaml.org,2002:map", anchor, true, style);
  }
  void OnMapEnd() override { close(); }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const char* reason, std::string_view what) const {
    auto message = at(mark.line, mark.column, what);
    throw stop{error(errc::invalid_argument, reason, message).with_violation(pointer(), message)};
  }
  bool starts(const YAML::Mark& mark, std::string_view with) const {
    return mark.pos >= 0 && static_cast<std::size_t>(mark.pos) <= text_.size() && text_.substr(mark.pos).starts_with(with);
  }
  bool in_key() const { return !stack_.empty() && stack_.back().is_map && !stack_.back().has_key; }

  void node(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (++nodes_ > lim_.max_nodes) fail(mark, "TooManyNodes", "more than " + std::to_string(lim_.max_nodes) + " values and keys");
    if (anchor != YAML::NullAnchor) fail(mark, "Anchor", "anchors are not taken");
  }
  void open(const YAML::Mark& mark, const std::string& tag, std::string_view core_tag, YAML::anchor_t anchor, bool is_map,
            YAML::EmitterStyle::value style) {
    node(mark, anchor);
    if (tag != "?" && tag != core_tag) fail(mark, "Tag", "the tag " + tag + " is not taken; only !!str, !!map and !!seq are");
    if (in_key()) fail(mark, "KeyNotString", "a key must be a string, not a map or a list");
    check_place(mark, is_map);
    if (stack_.size() >= lim_.max_depth)
      fail(mark, "TooDeep", "nested deeper than " + std::to_string(lim_.max_depth) + " levels");
    frame f;
    if (is_map)
      f.container.emplace_object();
    else
      f.container.emplace_array();
    f.is_map = is_map;
    f.flow = style == YAML::EmitterStyle::Flow;
    stack_.push_back(std::move(f));
  }
  void close() {
    auto done = std::move(stack_.back().container);
    stack_.pop_back();
    add(std::move(done));
  }
  void add(json::value v) {
    if (stack_.empty()) {
      documents.push_back(std::move(v));
      return;
    }
    auto& f = stack_.back();
    if (f.is_map) {
      f.container.get_object().emplace(f.key, std::move(v));
      f.has_key = false;
    } else {
      f.container.get_array().push_back(std::move(v));
    }
  }
  void key(const YAML::Mark& mark, const std::string& text, bool is_text, const span& where) {
    auto& f = stack_.back();
    check_colon(mark, is_text, where, f);
    if (!is_text && text == "<<") fail(mark, "MergeKey", "merge keys are not taken; write the values out");
    if (!is_text && resolve_strict(text).kind != scalar_kind::text)
      fail(mark, "KeyNotString", "the key " + text + " is not a string to every YAML reader; quote it");
    if (f.container.get_object().contains(text)) {
      f.key = text;
      f.has_key = true;
      fail(mark, "DuplicateKey", "the key is there twice");
    }
    f.key = text;
    f.has_key = true;
  }
  void check_colon(const YAML::Mark& mark, bool is_text, const span& where, frame& f) const {
    if (f.flow && starts(mark, ":")) fail(mark, "MalformedYaml", "quote text that begins with a colon");
    bool is_explicit = is_explicit_key(text_, static_cast<std::size_t>(mark.pos));
    f.key_line = mark.line;
    f.key_column = f.flow ? -1 : is_explicit ? mark.column - 2 : mark.column;
    if (is_explicit) return;
    bool known_end = where.end != where.begin;
    if (!known_end || !colon_follows(text_, where.end, f.flow && !is_text))
      fail(mark, "MalformedYaml", "there is no colon, or none with a blank behind it, after the key");
  }
  // A list may stand in the column of its key; everything else has to be to the right of it.
  void check_place(const YAML::Mark& mark, bool to_the_right = true) const {
    if (stack_.empty()) return;
    const auto& f = stack_.back();
    if (f.is_map && mark.line > f.key_line && mark.column < f.key_column + (to_the_right ? 1 : 0))
      fail(mark, "MalformedYaml", "the value is not indented more than its key");
    if (f.flow && starts(mark, ":")) fail(mark, "MalformedYaml", "quote text that begins with a colon");
    if (f.flow && !f.is_map && starts(mark, ",")) fail(mark, "MalformedYaml", "there is nothing between two commas");
  }
  json::value plain(const YAML::Mark& mark, const std::string& text) const {
    auto s = resolve_strict(text);
    switch (s.kind) {
      case scalar_kind::text:
        return json::value(text);
      case scalar_kind::ambiguous:
        fail(mark, "AmbiguousScalar", "YAML versions read " + text + " differently; quote this value");
      case scalar_kind::not_json:
        fail(mark, "NumberOutOfRange", text + " has no JSON form; quote this value if it is meant as text");
      case scalar_kind::out_of_range:
        fail(mark, "NumberOutOfRange", "the number does not fit; quote this value if it is meant as text");
      default:
        return s.value;
    }
  }

  std::string_view text_;
  const limits& lim_;
  bool one_;
  std::size_t count_ = 0;
  std::size_t nodes_ = 0;
  std::vector<frame> stack_;
  std::vector<span> opaque_;
};

// yaml-cpp tells of no directive, so lines that begin with % are refused before it sees them.
result<void> check_directives(std::string_view text) {
  int line = 0;
  for (std::size_t i = 0; i < text.size(); ++line) {
    if (text[i] == '%') {
      auto message = at(line, 0, "directives are not taken");
      return error(errc::invalid_argument, "Directive", message).with_violation("", message);
    }
    auto end = text.find('\n', i);
    if (end == std::string_view::npos) break;
    i = end + 1;
  }
  return {};
}

// Readers disagree on tabs as white space, so they may stand only in quoted text, blocks and comments.
result<void> check_tabs(std::string_view text, const std::vector<span>& opaque) {
  auto it = opaque.begin();
  for (auto i = text.find('\t'); i != std::string_view::npos; i = text.find('\t', i + 1)) {
    while (it != opaque.end() && it->end <= i) ++it;
    if (it != opaque.end() && it->begin < i) continue;
    auto line_start = i == 0 ? 0 : text.rfind('\n', i - 1) + 1;
    auto hash = text.substr(line_start, i - line_start).rfind('#');
    bool own = hash != std::string_view::npos && (it == opaque.begin() || std::prev(it)->end <= line_start + hash);
    if (own && (hash == 0 || text[line_start + hash - 1] == ' ')) continue;
    auto line = static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n'));
    auto message = at(line, static_cast<int>(i - line_start), "a tab outside of quotes and blocks; use spaces");
    return error(errc::invalid_argument, "BadCharacter", message).with_violation("", message);
  }
  return {};
}

result<std::vector<json::value>> run(std::string_view text, const limits& lim, bool one) {
  if (text.size() > lim.max_bytes)
    return error(errc::too_large, "TooLarge", "the document is over " + std::to_string(lim.max_bytes) + " bytes");
  KUBEOPERA_CHECK(check_bytes(text));
  KUBEOPERA_CHECK(check_directives(text));
  strict_handler handler(text, lim, one);
  KUBEOPERA_CHECK(parse(text, handler, [&] { return handler.pointer(); }, [] { return true; }));
  KUBEOPERA_CHECK(check_tabs(text, handler.opaque()));
  return std::move(handler.documents);
}

}  // namespace

result<json::value> read(std::string_view text, const limits& lim) {
  KUBEOPERA_TRY(auto all, run(text, lim, true));
  if (all.empty())
    return error(errc::invalid_argument, "MalformedYaml", "there is no document").with_violation("", "there is no document");
  return std::move(all.front());
}

result<std::vector<json::value>> read_all(std::string_view text, const limits& lim) {
  KUBEOPERA_TRY(auto all, run(text, lim, false));
  std::erase_if(all, [](const json::value& v) { return v.is_null(); });
  return all;
}

}  // namespace kubeopera::inline v1::yaml
