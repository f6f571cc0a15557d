// The log of a cluster's changes.
#include "src/testing/world_journal.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace kubeopera::inline v1::testing {

namespace {

std::string id_of(const api_commit& c) { return c.resource + "|" + c.ns + "|" + c.name; }

error disk_error(const std::string& what, const std::string& file) {
  return {errc::unavailable, "DiskFailed", what + " " + file + ": " + std::strerror(errno)};
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

journal::~journal() {
  if (fd_ >= 0) ::close(fd_);
}

std::string journal::line_of(const api_commit& c) const {
  std::string line = "{\"r\":";
  json::append_quoted(line, c.resource);
  line += ",\"ns\":";
  json::append_quoted(line, c.ns);
  line += ",\"n\":";
  json::append_quoted(line, c.name);
  line += ",\"v\":" + std::to_string(c.resource_version) + ",\"o\":" + (c.object.empty() ? "null" : c.object) + "}\n";
  return line;
}

result<std::unique_ptr<journal>> journal::open(std::string file, logger& log) {
  std::unique_ptr<journal> j(new journal(std::move(file), log));
  KUBEOPERA_CHECK(j->load());
  KUBEOPERA_CHECK(j->rewrite());
  return j;
}

result<void> journal::load() {
  std::ifstream in(file_, std::ios::binary);
  if (!in) return {};
  json::limits lim;
  lim.max_bytes = 8u << 20;
  std::string line;
  std::size_t number = 0;
  while (std::getline(in, line)) {
    ++number;
    auto read = json::read_object(line, lim);
    if (!read) {
      // Only the last line may be half-written: the process was killed in the middle of it.
      if (in.peek() == std::ifstream::traits_type::eof()) break;
      return error(errc::data_loss, "JournalDamaged", file_ + " line " + std::to_string(number) + ": " + read.error().message());
    }
    api_commit c;
    c.resource = std::string(json::get_string(*read, {"r"}));
    c.ns = std::string(json::get_string(*read, {"ns"}));
    c.name = std::string(json::get_string(*read, {"n"}));
    c.resource_version = static_cast<std::uint64_t>(json::get_int(*read, {"v"}));
    newest_ = std::max(newest_, c.resource_version);
    if (const auto* o = json::get_object(*read, {"o"})) {
      c.object = json::write(*o);
      live_[id_of(c)] = std::move(c);
    } else {
      live_.erase(id_of(c));
    }
  }
  loaded_ = number > 0;
  return {};
}

// A new file with only what is live takes the place of the old one.
result<void> journal::rewrite() {
  auto fresh = file_ + ".new";
  int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return disk_error("cannot write", fresh);
  std::string text;
  bool ok = true;
  for (const auto& [id, c] : live_) {
    text += line_of(c);
    if (text.size() > (1u << 20)) {
      ok = ok && write_all(fd, text);
      text.clear();
    }
  }
  // The newest version counts on even if its object is gone.
  api_commit mark;
  mark.resource_version = newest_;
  if (loaded_) text += line_of(mark);
  ok = ok && write_all(fd, text) && ::fdatasync(fd) == 0;
  if (!ok || ::rename(fresh.c_str(), file_.c_str()) != 0) {
    ::close(fd);
    return disk_error("cannot write", file_);
  }
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  ::lseek(fd_, 0, SEEK_END);
  lines_ = live_.size();
  return {};
}

std::vector<api_commit> journal::take_loaded() {
  std::lock_guard lock(mutex_);
  std::vector<api_commit> out;
  for (const auto& [id, c] : live_) out.push_back(c);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.resource_version < b.resource_version; });
  if (loaded_) {
    api_commit mark;
    mark.resource_version = newest_;
    out.push_back(std::move(mark));
  }
  return out;
}

void journal::append(const api_commit& c) {
  std::lock_guard lock(mutex_);
  newest_ = std::max(newest_, c.resource_version);
  loaded_ = true;
  if (c.object.empty()) {
    live_.erase(id_of(c));
  } else {
    auto& kept = live_[id_of(c)];
    if (kept.resource_version == c.resource_version) return;
    kept = c;
  }
  if (!write_all(fd_, line_of(c))) log_.error("cannot write the journal", {{"file", file_}, {"errno", std::strerror(errno)}});
  if (++lines_ < 4'000 || lines_ < live_.size() * 3) return;
  if (auto r = rewrite(); !r) log_.error("cannot compact the journal", {{"file", file_}, {"error", r.error()}});
}

}  // namespace kubeopera::inline v1::testing
