// Smart HTTP by way of the git program: three routes, two services, bodies streamed both ways.
#include "src/gitops/pkt.hpp"
#include "src/gitops/process.hpp"
#include "src/gitops/validate.hpp"

#include <kubeopera/gitops/server.hpp>

#include <algorithm>
#include <atomic>
#include <zlib.h>

namespace kubeopera::inline v1::gitops {

namespace {

using namespace detail;

http::response plain(int status, std::string text) {
  http::response out(status, "text/plain; charset=utf-8", std::move(text) + "\n");
  out.headers.set("Cache-Control", "no-cache");
  return out;
}

// Counts running programs; those beyond the limit wait.
class process_slots {
 public:
  explicit process_slots(std::size_t limit) : free_(limit) {}

  class slot {
   public:
    explicit slot(std::shared_ptr<process_slots> owner) : owner_(std::move(owner)) {}
    ~slot() { owner_->leave(); }
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;

   private:
    std::shared_ptr<process_slots> owner_;
  };

  /// Null when none became free in time. Errors: cancelled.
  static task<std::shared_ptr<slot>> take(std::shared_ptr<process_slots> self, duration patience) {
    auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
      auto seen = self->changed_.ticket();
      if (self->try_take()) co_return std::make_shared<slot>(self);
      auto left = until - std::chrono::steady_clock::now();
      if (left <= duration::zero()) co_return std::shared_ptr<slot>();
      KUBEOPERA_CO_TRY(bool again, co_await self->changed_.wait_for(seen, left));
      (void)again;
    }
  }

 private:
  bool try_take() {
    auto n = free_.load();
    while (n > 0)
      if (free_.compare_exchange_weak(n, n - 1)) return true;
    return false;
  }
  void leave() {
    ++free_;
    changed_.notify();
  }
  std::atomic<std::size_t> free_;
  notifier changed_;
};

// Undoes Content-Encoding: gzip piece by piece.
class gunzip {
 public:
  gunzip() { good_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ~gunzip() { inflateEnd(&stream_); }
  gunzip(const gunzip&) = delete;
  gunzip& operator=(const gunzip&) = delete;

  /// Errors: invalid_argument, too_large.
  result<std::string> take(std::string_view bytes, std::size_t limit) {
    std::string out;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (good_ && stream_.avail_in > 0 && !ended_) {
      char buffer[16384];
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof buffer;
      int rc = inflate(&stream_, Z_NO_FLUSH);
      good_ = rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
      ended_ = rc == Z_STREAM_END;
      out.append(buffer, sizeof buffer - stream_.avail_out);
      if (out.size() > limit) return error(errc::too_large, "BodyTooLarge", "the request's body is too large");
      if (rc == Z_BUF_ERROR && stream_.avail_out == sizeof buffer) break;
    }
    if (!good_) return error(errc::invalid_argument, "BadGzip", "the request's body is not gzip");
    return out;
  }
  bool ended() const noexcept { return ended_; }

 private:
  z_stream stream_{};
  bool good_ = false, ended_ = false;
};

// A program's output as a response body. Its slot is free again when the body is dropped.
class program_output : public http::body_source {
 public:
  program_output(std::string first, std::unique_ptr<child_process> child, std::shared_ptr<process_slots::slot> slot)
      : first_(std::move(first)), slot_(std::move(slot)), child_(std::move(child)) {}

  task<std::string> next() override {
    if (!first_.empty()) co_return std::exchange(first_, {});
    KUBEOPERA_CO_TRY(auto piece, co_await child_->read());
    if (!piece.empty()) co_return piece;
    // A program that failed has cut its answer short: so must we.
    KUBEOPERA_CO_TRY(int code, co_await child_->wait());
    if (code != 0)
      co_return error(errc::unavailable, "GitFailed", "the git program failed").with_detail(clean_text(child_->error_text()));
    co_return std::string();
  }

 private:
  std::string first_;
  std::shared_ptr<process_slots::slot> slot_;
  std::unique_ptr<child_process> child_;
};

struct route {
  std::string repository, service;
  bool advertise = false;
};

class git_server {
 public:
  git_server(git_server_options options, logger& log)
      : options_(std::move(options)), log_(log), slots_(std::make_shared<process_slots>(options_.max_processes)) {}

  static asio::awaitable<http::response> serve(std::shared_ptr<git_server> self, http::request req) {
    auto path = std::string_view(req.target).substr(0, req.target.find('?'));
    auto found = self->match(path, req);
    if (!found) co_return plain(404, "not found");
    bool post = !found->advertise;
    if (req.method != (post ? "POST" : "GET")) {
      auto out = plain(405, "wrong method");
      out.headers.set("Allow", post ? "POST" : "GET");
      co_return out;
    }
    auto access = found->service == "git-receive-pack" ? git_access::write : git_access::read;
    if (self->options_.authorize) {
      if (auto allowed = self->options_.authorize(req, access); !allowed) co_return refusal(allowed.error());
    }
    if (access == git_access::write && !self->options_.allow_push) co_return plain(403, "this repository is read-only");
    if (post && req.headers.get("Content-Type") != "application/x-" + found->service + "-request")
      co_return plain(415, "wrong content type");
    auto slot = co_await process_slots::take(self->slots_, self->options_.max_wait);
    if (!slot || !*slot) {
      auto out = plain(503, "too many Git requests at once");
      out.headers.set("Retry-After", "5");
      co_return out;
    }
    co_return co_await self->answer(std::move(req), std::move(*found), std::move(*slot));
  }

 private:
  static http::response refusal(const error& e) {
    if (e.code() == errc::unauthenticated) {
      auto out = plain(401, e.message());
      out.headers.set("WWW-Authenticate", "Basic realm=\"git\", charset=\"UTF-8\"");
      return out;
    }
    return e.code() == errc::not_found ? plain(404, "not found") : plain(403, e.message());
  }

  // The repository and what is asked of it; nullopt where there is no such thing.
  std::optional<route> match(std::string_view path, const http::request& req) const {
    if (!path.starts_with(options_.prefix)) return std::nullopt;
    path.remove_prefix(options_.prefix.size());
    route out;
    out.repository = options_.repository;
    if (!options_.root.empty()) {
      if (!path.starts_with('/')) return std::nullopt;
      auto name = path.substr(1, path.find('/', 1) - 1);
      path.remove_prefix(std::min(path.size(), name.size() + 1));
      if (!name.ends_with(".git") || !is_dns_label(name.substr(0, name.size() - 4))) return std::nullopt;
      out.repository = options_.root + "/" + std::string(name);
    }
    if (path == "/info/refs") {
      auto query = req.target.find('?');
      auto text = query == std::string::npos ? std::string_view() : std::string_view(req.target).substr(query + 1);
      for (std::string_view service : {"git-upload-pack", "git-receive-pack"})
        if (text == "service=" + std::string(service)) out.service = service;
      out.advertise = true;
    } else if (path == "/git-upload-pack" || path == "/git-receive-pack") {
      out.service = path.substr(1);
    }
    if (out.service.empty()) return std::nullopt;
    return out;
  }

  spawn_options command(const route& r, const http::request& req) const {
    spawn_options out;
    out.program = options_.git_program;
    out.arguments = {"-c",
                     "safe.directory=" + r.repository,
                     "-c",
                     "uploadpack.allowAnySHA1InWant=true",
                     "-c",
                     "uploadpack.allowFilter=true",
                     "-c",
                     "receive.denyNonFastForwards=true",
                     "-c",
                     "receive.denyDeletes=true",
                     "-c",
                     "receive.fsckObjects=true",
                     "-c",
                     "core.fsync=committed,reference",
                     r.service.substr(4),
                     "--stateless-rpc"};
    if (r.advertise) out.arguments.push_back("--advertise-refs");
    out.arguments.push_back(r.repository);
    out.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent",    "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
                       "GIT_CONFIG_GLOBAL=/dev/null",       "GIT_TERMINAL_PROMPT=0"};
    auto version = req.headers.get("Git-Protocol").value_or("");
    bool fit = version.size() <= 100 && std::all_of(version.begin(), version.end(), [](char c) {
                 return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '=' || c == ':' || c == '-';
               });
    if (fit && !version.empty()) out.environment.push_back("GIT_PROTOCOL=" + std::string(version));
    return out;
  }

  asio::awaitable<http::response> answer(http::request req, route r, std::shared_ptr<process_slots::slot> slot) {
    auto executor = co_await current_executor();
    auto child = child_process::start(executor, command(r, req));
    if (!child) {
      log_.error("git cannot be started", {{"error", child.error()}});
      co_return plain(503, "the Git server is not available");
    }
    auto sent = co_await send_body(req, **child);
    if (!sent) {
      (*child)->stop();
      auto code = sent.error().code();
      co_return plain(code == errc::too_large ? 413 : code == errc::invalid_argument ? 400 : 503, sent.error().message());
    }
    // The first piece decides: a program that fails at once has a status to tell.
    auto first = co_await (*child)->read();
    if (!first || first->empty()) {
      auto code = co_await (*child)->wait();
      if (!first || !code || *code != 0) {
        log_.warn("git failed", {{"service", r.service}, {"said", clean_text((*child)->error_text())}});
        co_return plain(r.advertise ? 404 : 500, "the repository cannot be read");
      }
    }
    std::string head;
    if (r.advertise) {
      append_pkt(head, "# service=" + r.service + "\n");
      append_flush(head);
    }
    http::response out(200);
    out.headers.set("Content-Type", "application/x-" + r.service + (r.advertise ? "-advertisement" : "-result"));
    out.headers.set("Cache-Control", "no-cache, max-age=0, must-revalidate");
    out.stream = std::make_unique<program_output>(head + *first, std::move(*child), std::move(slot));
    co_return out;
  }

  // Hands the whole body to the program. What it answers meanwhile is kept by child_process.
  task<void> send_body(http::request& req, child_process& child) {
    auto encoding = req.headers.get("Content-Encoding").value_or("");
    if (!encoding.empty() && encoding != "gzip" && encoding != "x-gzip" && encoding != "identity")
      co_return error(errc::invalid_argument, "ContentEncoding", "only gzip is understood as content encoding");
    std::optional<gunzip> unpack;
    if (encoding.ends_with("gzip")) unpack.emplace();
    std::size_t total = 0;
    std::string piece = std::move(req.body);
    while (true) {
      if (piece.empty()) {
        if (!req.stream) break;
        KUBEOPERA_CO_TRY(piece, co_await req.stream->next());
        if (piece.empty()) break;
      }
      if (unpack) {
        KUBEOPERA_CO_TRY(piece, unpack->take(piece, options_.max_request_bytes - total));
      }
      total += piece.size();
      if (total > options_.max_request_bytes) co_return error(errc::too_large, "BodyTooLarge", "the request's body is too large");
      // A program that has stopped reading has its reason; it says it in its answer.
      if (auto written = co_await child.write(std::exchange(piece, {})); !written) {
        if (written.error().code() == errc::cancelled) co_return written.error();
        break;
      }
    }
    if (unpack && !unpack->ended() && total > 0 && !req.stream)
      co_return error(errc::invalid_argument, "BadGzip", "the request's body ends too early");
    child.close_input();
    co_return result<void>();
  }

  git_server_options options_;
  logger& log_;
  std::shared_ptr<process_slots> slots_;
};

}  // namespace

http::handler make_git_http_handler(git_server_options options, logger& log) {
  auto server = std::make_shared<git_server>(std::move(options), log);
  return [server](http::request req) { return git_server::serve(server, std::move(req)); };
}

}  // namespace kubeopera::inline v1::gitops
