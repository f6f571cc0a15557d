// Commit objects and the message of a batch.
#include "src/gitops/commit.hpp"

#include <charconv>

namespace kubeopera::inline v1::gitops::detail {

namespace {

error damaged_commit() { return {errc::data_loss, "DamagedCommit", "a commit object is damaged"}; }

// Takes "<key> <value>\n" off the front; nullopt when the next line has another key.
std::optional<std::string_view> take_line(std::string_view& rest, std::string_view key) {
  if (!rest.starts_with(key) || rest.size() <= key.size() || rest[key.size()] != ' ') return std::nullopt;
  auto end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  auto value = rest.substr(key.size() + 1, end - key.size() - 1);
  rest.remove_prefix(end + 1);
  return value;
}

struct signature {
  std::string name, email;
  std::int64_t time = 0;
};

// "Name <email> 1700000000 +0000". Old histories hold odd ones: what is missing stays empty.
signature parse_signature(std::string_view line) {
  signature out;
  auto open = line.find('<'), close = line.rfind('>');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return out;
  auto name = line.substr(0, open);
  while (name.ends_with(' ')) name.remove_suffix(1);
  out.name = std::string(name);
  out.email = std::string(line.substr(open + 1, close - open - 1));
  auto when = line.substr(close + 1);
  while (when.starts_with(' ')) when.remove_prefix(1);
  std::from_chars(when.data(), when.data() + when.size(), out.time);
  return out;
}

std::string clean_identity(std::string_view text) {
  std::string out;
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x20 && c != '<' && c != '>' && c != 0x7f) out.push_back(c);
  return out.empty() ? "kubeopera" : out;
}

std::string subject_of(const change& c) { return c.subject.empty() ? "Update " + c.directory : c.subject; }

constexpr std::size_t max_listed = 50;

}  // namespace

result<parsed_commit> parse_commit(std::string_view bytes) {
  parsed_commit out;
  auto tree = take_line(bytes, "tree");
  auto tree_id = tree ? oid::parse(*tree) : std::nullopt;
  if (!tree_id) return damaged_commit();
  out.tree = *tree_id;
  while (auto parent = take_line(bytes, "parent")) {
    auto id = oid::parse(*parent);
    if (!id) return damaged_commit();
    out.parents.push_back(*id);
  }
  auto author = take_line(bytes, "author");
  auto committer = take_line(bytes, "committer");
  if (!author || !committer) return damaged_commit();
  auto who = parse_signature(*author);
  out.author_name = std::move(who.name);
  out.author_email = std::move(who.email);
  out.time = parse_signature(*committer).time;
  auto blank = bytes.starts_with('\n') ? 0 : bytes.find("\n\n");
  if (blank == std::string_view::npos) return out;
  out.message = std::string(bytes.substr(blank + (bytes.starts_with('\n') ? 1 : 2)));
  return out;
}

std::string format_commit(const commit_parts& parts) {
  auto who = clean_identity(parts.name) + " <" + clean_identity(parts.email) + "> " + std::to_string(parts.time) + " +0000\n";
  std::string out = "tree " + parts.tree.hex() + "\n";
  if (parts.parent) out += "parent " + parts.parent->hex() + "\n";
  out += "author " + who + "committer " + who + "\n" + parts.message;
  return out;
}

std::string compose_message(std::span<const change* const> changes) {
  std::string out;
  if (changes.size() == 1) {
    out = subject_of(*changes[0]) + "\n";
  } else {
    out = subject_of(*changes[0]) + " and " + std::to_string(changes.size() - 1) + " more\n\n";
    for (std::size_t i = 0; i < changes.size() && i < max_listed; ++i) out += "- " + subject_of(*changes[i]) + "\n";
    if (changes.size() > max_listed) out += "- and " + std::to_string(changes.size() - max_listed) + " more\n";
  }
  std::string trailers;
  for (const auto* c : changes)
    for (const auto& [key, value] : c->trailers) trailers += key + ": " + value + "\n";
  if (!trailers.empty()) out += "\n" + trailers;
  return out;
}

}  // namespace kubeopera::inline v1::gitops::detail
