// The pooled client: one exchange at a time on a connection, repeated once where a pooled connection had died.
#include "src/http/client_connection.hpp"
#include "src/http/text.hpp"
#include "src/http/tls.hpp"

#include <kubeopera/http/client.hpp>
#include <kubeopera/http/url.hpp>

#include <atomic>
#include <mutex>
#include <vector>

namespace kubeopera::inline v1::http {

namespace {

bool idempotent(std::string_view method) {
  for (std::string_view m : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    if (method == m) return true;
  }
  return false;
}

// Everything that a client and its streams share.
class client_core final : public connection_home, public std::enable_shared_from_this<client_core> {
 public:
  client_core(asio::any_io_executor e, client_options o) : executor(std::move(e)), options(std::move(o)) {}

  void give_back(std::unique_ptr<client_connection> c) override {
    c->idle_since = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    if (idle_.size() >= options.max_idle_connections) return;
    idle_.push_back(std::move(c));
  }

  // The connection that was used last is the one most likely to be alive.
  std::unique_ptr<client_connection> take_idle() {
    auto oldest = std::chrono::steady_clock::now() - options.idle_lifetime;
    for (;;) {
      std::unique_ptr<client_connection> c;
      {
        std::lock_guard lock(mutex_);
        if (idle_.empty()) return nullptr;
        c = std::move(idle_.back());
        idle_.pop_back();
      }
      if (c->idle_since < oldest || c->stream->stale()) continue;
      c->reused = true;
      return c;
    }
  }

  const asio::any_io_executor executor;
  const client_options options;
  dial to;
  std::string host_header;
  std::string prefix;  // path before every target, without a slash at its end

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<client_connection>> idle_;
};

error bad_request(const char* message) { return {errc::invalid_argument, "BadRequest", message}; }

result<void> check(const request& req, const client_core& core) {
  if (!is_token(req.method) || req.method == "CONNECT") return bad_request("the method cannot be sent");
  if (req.target.empty() || req.target.front() != '/') return bad_request("the target must begin with a slash");
  for (char c : req.target) {
    if (c <= 0x20 || c >= 0x7f || c == '#') return bad_request("the target holds a byte that must be percent-encoded");
  }
  if (!wire::sendable(req.headers) || !wire::sendable(core.options.default_headers)) {
    return bad_request("a header holds a character that it may not");
  }
  return {};
}

std::string write_head(const request& req, const client_core& core) {
  std::string out;
  out.reserve(256 + req.body.size());
  out += req.method;
  out += ' ';
  out += core.prefix;
  out += req.target;
  out += " HTTP/1.1\r\n";
  wire::append_field(out, "Host", req.headers.get("Host").value_or(core.host_header));
  for (const auto& [name, value] : req.headers) {
    if (!wire::framing_header(name) && !iequals(name, "host") && !iequals(name, "expect")) wire::append_field(out, name, value);
  }
  for (const auto& [name, value] : core.options.default_headers) {
    if (req.headers.count(name) == 0 && !wire::framing_header(name)) wire::append_field(out, name, value);
  }
  bool takes_body = req.method == "POST" || req.method == "PUT" || req.method == "PATCH";
  if (req.stream)
    wire::append_field(out, "Transfer-Encoding", "chunked");
  else if (!req.body.empty() || takes_body)
    wire::append_field(out, "Content-Length", std::to_string(req.body.size()));
  out += "\r\n";
  return out;
}

task<std::unique_ptr<client_connection>> open_connection(std::shared_ptr<client_core> core) {
  auto stream = co_await with_deadline(core->options.connect_timeout, connect(core->executor, core->to));
  if (!stream && stream.error().code() == errc::deadline_exceeded) {
    co_return error(errc::deadline_exceeded, "ConnectTimeout", "no connection in time");
  }
  if (!stream) co_return stream.error();
  auto out = std::make_unique<client_connection>();
  out->stream = std::move(*stream);
  co_return out;
}

// A failure of the body to be sent is told apart from one of the connection by source_failed.
task<void> upload(client_connection& c, body_source& body, watchdog& dog, bool& source_failed) {
  std::string line;
  for (;;) {
    auto piece = co_await body.next();
    source_failed = !piece;
    if (!piece) co_return piece.error();
    dog.extend();
    line.clear();
    wire::append_chunk_head(line, piece->size());
    if (piece->empty()) co_return co_await c.stream->write(line, "\r\n");
    KUBEOPERA_CO_CHECK(co_await c.stream->write(line, *piece, "\r\n"));
    dog.extend();
  }
}

task<void> send_request(client_connection& c, std::string& head, request& req, watchdog& dog, bool& source_failed) {
  if (!req.stream) {
    constexpr std::size_t small = 8192;
    if (req.body.size() > small) co_return co_await c.stream->write(head, req.body);
    std::string whole = head + req.body;
    co_return co_await c.stream->write(whole);
  }
  KUBEOPERA_CO_CHECK(co_await c.stream->write(head));
  co_return co_await upload(c, *req.stream, dog, source_failed);
}

// What one attempt on one connection came to.
struct attempt {
  attempt() = default;
  std::optional<result<response>> outcome;
  bool retry = false;
};

task<response> take_body(std::shared_ptr<client_core> core, std::unique_ptr<client_connection> c, wire::response_head head,
                         bool want_stream) {
  response res(head.status);
  res.headers = std::move(head.headers);
  auto body = make_response_body(core, std::move(c), head.body, head.content_length, head.keep_alive,
                                 want_stream ? core->options.stream_idle_timeout : duration::zero());
  if (want_stream) {
    res.stream = std::move(body);
    co_return res;
  }
  auto limit = core->options.max_response_bytes;
  if (head.body == wire::body_kind::length && head.content_length > limit) {
    co_return error(errc::too_large, "ResponseTooLarge", "the response is larger than " + std::to_string(limit) + " bytes");
  }
  auto all = co_await read_all(*body, limit);
  if (!all && all.error().code() == errc::too_large) {
    co_return error(errc::too_large, "ResponseTooLarge", "the response is larger than " + std::to_string(limit) + " bytes");
  }
  if (!all) co_return all.error();
  res.body = std::move(*all);
  co_return res;
}

error in_time_or(const watchdog& dog, error e) {
  if (dog.fired()) return error(errc::deadline_exceeded, "ResponseTimeout", "no complete response in time");
  return e;
}

asio::awaitable<attempt> try_on(std::shared_ptr<client_core> core, std::unique_ptr<client_connection> c, std::string& head,
                                request& req, bool want_stream) {
  attempt out;
  auto executor = co_await current_executor();
  auto* stream = c->stream.get();
  watchdog dog(executor, *stream, core->options.response_timeout);
  bool reused = c->reused;
  auto before = stream->bytes_written();
  bool source_failed = false;
  auto sent = co_await send_request(*c, head, req, dog, source_failed);
  if (!sent && (source_failed || sent.error().reason() != "ConnectionReset")) {
    out.outcome = in_time_or(dog, sent.error());
    co_return out;
  }
  // Also after a failed write: a server that refuses a body answers before it has read it.
  auto got = co_await read_response_head(*c, req.method == "HEAD");
  if (!got) {
    bool nothing_sent = stream->bytes_written() == before;
    bool repeatable = !req.stream && (idempotent(req.method) || nothing_sent);
    out.retry = reused && repeatable && !dog.fired() && c->in.empty() && got.error().reason() == "ConnectionReset";
    out.outcome = in_time_or(dog, got.error());
    co_return out;
  }
  if (!sent) got->keep_alive = false;
  auto res = co_await take_body(core, std::move(c), std::move(*got), want_stream);
  if (!res)
    out.outcome = in_time_or(dog, res.error());
  else
    out.outcome = std::move(res);
  co_return out;
}

task<response> send_on(std::shared_ptr<client_core> core, request req, bool want_stream) {
  KUBEOPERA_CO_CHECK(check(req, *core));
  auto head = write_head(req, *core);
  auto c = core->take_idle();
  if (c) {
    auto first = co_await try_on(core, std::move(c), head, req, want_stream);
    if (!first.retry) co_return std::move(*first.outcome);
  }
  KUBEOPERA_CO_TRY(auto fresh, co_await open_connection(core));
  auto last = co_await try_on(core, std::move(fresh), head, req, want_stream);
  co_return std::move(*last.outcome);
}

class pooled_client final : public transport {
 public:
  explicit pooled_client(std::shared_ptr<client_core> core) : core_(std::move(core)) {}
  task<response> send(request req, bool want_stream) override { return send_on(core_, std::move(req), want_stream); }

 private:
  std::shared_ptr<client_core> core_;
};

}  // namespace

result<std::shared_ptr<transport>> make_client(asio::any_io_executor executor, client_options options) {
  KUBEOPERA_TRY(auto base, parse_url(options.base_url));
  if (base.target.find('?') != std::string::npos) {
    return error(errc::invalid_argument, "BadUrl", "the base URL must not have a query");
  }
  auto core = std::make_shared<client_core>(std::move(executor), std::move(options));
  core->host_header = base.authority();
  core->prefix = base.target;
  if (core->prefix.ends_with('/')) core->prefix.pop_back();
  core->to.host = base.host;
  core->to.port = base.port;
  core->to.policy = core->options.policy;
  if (!core->options.connect_to.empty()) {
    KUBEOPERA_TRY(auto other, parse_url("http://" + core->options.connect_to));
    core->to.host = other.host;
    core->to.port = other.port;
  }
  if (base.tls()) {
    KUBEOPERA_TRY(core->to.tls, client_tls_context::make(core->options.tls, base.host));
  }
  return std::shared_ptr<transport>(std::make_shared<pooled_client>(std::move(core)));
}

}  // namespace kubeopera::inline v1::http
