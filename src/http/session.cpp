// The session: its life, its deadlines, and the answering of requests. Reading bodies is in session_body.cpp.
#include "src/http/session.hpp"

#include "src/http/text.hpp"

#include <kubeopera/json/write.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <charconv>
#include <chrono>
#include <ctime>

namespace kubeopera::inline v1::http {

namespace {

constexpr std::chrono::milliseconds watch_after{200};
constexpr std::size_t watch_room = 4096;
constexpr std::size_t watch_buffer_limit = 64u << 10;

std::int64_t steady_now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

response problem(int status, std::string_view reason, std::string_view message) {
  json::object o;
  o["type"] = "about:blank";
  o["title"] = wire::status_text(status);
  o["status"] = status;
  o["reason"] = reason;
  o["detail"] = message;
  return response(status, "application/problem+json", json::write(o));
}

// The Date header's value, made once a second and thread.
std::string_view http_date() {
  thread_local std::time_t made = 0;
  thread_local char text[32];
  thread_local std::size_t size = 0;
  auto now = std::time(nullptr);
  if (now != made) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    made = now;
  }
  return {text, size};
}

bool bodyless(int status) { return status == 204 || status == 304; }

std::optional<std::uint64_t> stated_length(const fields& headers) {
  auto text = headers.get("Content-Length");
  if (!text) return std::nullopt;
  std::uint64_t n = 0;
  auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), n);
  if (text->empty() || ec != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return n;
}

}  // namespace

session::session(std::shared_ptr<server_context> context, std::unique_ptr<byte_stream> stream, asio::any_io_executor io)
    : context_(std::move(context)), stream_(std::move(stream)), strand_(asio::make_strand(io)) {}

void session::start(std::shared_ptr<session> self, std::function<void()> on_end) {
  auto strand = self->strand_;
  asio::post(strand, [self = std::move(self), on_end = std::move(on_end)] {
    if (self->stopped_)
      self->end(on_end);
    else
      self->run(on_end);
  });
}

void session::run(std::function<void()> on_end) {
  auto life = [](std::shared_ptr<session> s) -> asio::awaitable<void> {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await s->serve();
  };
  auto self = shared_from_this();
  asio::co_spawn(
      strand_, life(self),
      asio::bind_cancellation_slot(stop_signal_.slot(), [self, on_end = std::move(on_end)](std::exception_ptr failure) {
        if (failure) self->context_->log->error("http session failed");
        self->end(on_end);
      }));
}

void session::end(const std::function<void()>& on_end) {
  ended_ = true;
  deadline_ = handling_since_ = never;
  stream_->close();
  on_end();
}

void session::set_deadline(phase p, duration time) {
  phase_ = p;
  deadline_.store(steady_now() + std::chrono::nanoseconds(time).count(), std::memory_order_relaxed);
}

void session::clear_deadline(phase p) {
  phase_ = p;
  deadline_.store(never, std::memory_order_relaxed);
}

void session::tick(std::int64_t now) {
  if (deadline_.load(std::memory_order_relaxed) <= now) {
    asio::post(strand_, [self = shared_from_this()] { self->expire(); });
  }
  if (handling_since_.load(std::memory_order_relaxed) <= now - std::chrono::nanoseconds(watch_after).count()) {
    asio::post(strand_, [self = shared_from_this()] {
      if (self->phase_ == phase::handling && !self->ended_) self->start_watch();
    });
  }
}

// A peer that is late with a request is told so by the coroutine; everything else is simply closed.
void session::expire() {
  if (ended_ || deadline_.load(std::memory_order_relaxed) > steady_now()) return;
  deadline_ = never;
  timed_out_ = true;
  if (phase_ == phase::head || phase_ == phase::body)
    stream_->cancel();
  else
    stream_->close();
}

void session::stop(bool only_idle) {
  asio::post(strand_, [self = shared_from_this(), only_idle] {
    if (self->ended_) return;
    self->keep_alive_ = false;
    bool in_use = self->phase_ != phase::idle && self->phase_ != phase::handshake && !self->endless_;
    if (only_idle && in_use) return;
    self->stopped_ = true;
    self->stop_signal_.emit(asio::cancellation_type::terminal);
  });
}

asio::awaitable<void> session::serve() {
  set_deadline(phase::handshake, context_->options.head_timeout);
  auto ready = co_await stream_->handshake();
  if (!ready) {
    context_->log->debug("tls handshake failed", {{"peer", stream_->peer()}, {"error", ready.error()}});
    co_return;
  }
  if (stream_->tls()) {
    sni_ = stream_->sni();
    client_certificate_ = stream_->client_certificate();
  }
  while (co_await exchange()) in_.shrink();
}

asio::awaitable<bool> session::exchange() {
  timed_out_ = body_failed_ = false;
  wire::request_head head;
  if (!co_await read_head(head)) co_return false;
  request req;
  if (!co_await prepare_body(head, req)) co_return false;
  req.method = std::move(head.method);
  req.target = std::move(head.target);
  req.headers = std::move(head.headers);
  req.peer = stream_->peer();
  if (stream_->tls()) {
    req.tls = true;
    req.sni = sni_;
    req.client_certificate = client_certificate_;
  }
  bool to_head = req.method == "HEAD";
  auto res = co_await call_handler(std::move(req));
  if (stopped_) co_return false;
  if (!body_done_ || context_->draining) keep_alive_ = false;
  bool answered = co_await respond(std::move(res), to_head);
  ++exchange_;  // a body source of this exchange that somebody kept reads nothing more
  if (!answered) co_return false;
  if (keep_alive_) co_return true;
  if (!body_done_ || !in_.empty())
    co_await linger();
  else
    co_await finish();
  co_return false;
}

asio::awaitable<bool> session::read_head(wire::request_head& head) {
  const auto& options = context_->options;
  if (context_->draining && in_.empty()) co_return false;
  scanner_.reset();
  if (in_.empty())
    set_deadline(phase::idle, options.idle_timeout);
  else
    set_deadline(phase::head, options.head_timeout);
  for (;;) {
    std::optional<wire::fault> bad;
    auto size = scanner_.scan(in_.view(), options.max_head_bytes, bad);
    if (!bad && size > 0) {
      bad = wire::parse_request_head(in_.view().substr(0, size), head);
      in_.consume(size);
    }
    if (bad) {
      co_await refuse(bad->status, bad->reason, bad->message);
      co_return false;
    }
    if (size > 0) break;
    bool first = in_.empty();
    auto got = co_await receive(4096);
    if (!got && timed_out_ && phase_ == phase::head) co_await refuse(408, "RequestTimeout", "the request did not arrive in time");
    if (!got || *got == 0) co_return false;
    if (first) set_deadline(phase::head, options.head_timeout);
  }
  http_1_0_ = head.http_1_0;
  keep_alive_ = wanted_keep_alive_ = head.keep_alive;
  clear_deadline(phase::handling);
  co_return true;
}

task<std::size_t> session::receive(std::size_t room) {
  auto* where = in_.prepare(room);
  auto got = co_await stream_->read_some(where, in_.room());
  if (got) in_.commit(*got);
  co_return got;
}

asio::awaitable<response> session::call_handler(request req) {
  clear_deadline(phase::handling);
  if (body_done_) watch_handler();
  std::optional<response> out;
  std::string failure;
  try {
    out.emplace(co_await context_->handle(std::move(req)));
  } catch (const std::exception& e) {
    failure = e.what();
  }
  handling_since_.store(never, std::memory_order_relaxed);
  if (!out) {
    context_->log->error("http handler threw", {{"peer", stream_->peer()}, {"what", failure}});
    out.emplace(problem(500, "InternalError", "the server failed to handle the request"));
  }
  phase_ = phase::writing;
  if (watching_) co_await end_watch();
  co_return std::move(*out);
}

task<void> session::send(std::string_view a, std::string_view b, std::string_view c) {
  set_deadline(phase::writing, context_->options.write_timeout);
  auto r = co_await stream_->write(a, b, c);
  clear_deadline(phase::writing);
  co_return r;
}

void session::write_head(const response& res, std::optional<std::uint64_t> length, bool chunked) {
  out_.clear();
  wire::append_status_line(out_, res.status);
  wire::append_field(out_, "Date", http_date());
  for (const auto& [name, value] : res.headers) {
    if (!wire::framing_header(name) && !iequals(name, "date")) wire::append_field(out_, name, value);
  }
  if (length) wire::append_field(out_, "Content-Length", std::to_string(*length));
  if (chunked) wire::append_field(out_, "Transfer-Encoding", "chunked");
  if (!keep_alive_)
    wire::append_field(out_, "Connection", "close");
  else if (http_1_0_)
    wire::append_field(out_, "Connection", "keep-alive");
  out_ += "\r\n";
}

asio::awaitable<bool> session::respond(response res, bool to_head) {
  if (res.status < 200 || res.status > 999 || !wire::sendable(res.headers)) {
    context_->log->error("http response cannot be sent", {{"status", static_cast<long long>(res.status)}});
    res = problem(500, "InternalError", "the server failed to handle the request");
  }
  auto stated = stated_length(res.headers);
  if (res.stream && !to_head && !bodyless(res.status)) co_return co_await respond_stream(res, stated);
  std::optional<std::uint64_t> length;
  if (!bodyless(res.status)) {
    length = res.body.size();
    if (to_head && res.body.empty()) length = res.stream ? stated : stated.value_or(0);
  }
  res.stream.reset();
  write_head(res, length, false);
  bool with_body = !to_head && !bodyless(res.status);
  constexpr std::size_t small = 8192;
  if (with_body && res.body.size() <= small) out_ += res.body;
  auto sent = co_await send(out_, with_body && res.body.size() > small ? std::string_view(res.body) : std::string_view());
  co_return static_cast<bool>(sent);
}

asio::awaitable<bool> session::respond_stream(response& res, std::optional<std::uint64_t> length) {
  bool chunked = !length && !http_1_0_;
  if (!length && !chunked) keep_alive_ = false;
  write_head(res, length, chunked);
  auto sent = co_await send(out_);
  if (!sent) co_return false;
  endless_ = res.endless;
  bool whole = co_await pump(*res.stream, length, chunked);
  endless_ = false;
  if (watching_) co_await end_watch();
  if (!whole) stream_->abort();
  co_return whole && !stopped_;
}

// True where the body was written to its end, so that the peer can tell.
asio::awaitable<bool> session::pump(body_source& source, std::optional<std::uint64_t> length, bool chunked) {
  std::uint64_t written = 0;
  for (;;) {
    if (!watching_) start_watch();
    auto piece = co_await source.next();
    if (!piece || stopped_) {
      if (!stopped_) context_->log->debug("http response body failed", {{"peer", stream_->peer()}, {"error", piece.error()}});
      co_return false;
    }
    written += piece->size();
    if (piece->empty()) break;
    if (length && written > *length) co_return false;
    out_.clear();
    if (chunked) wire::append_chunk_head(out_, piece->size());
    auto sent = co_await send(out_, *piece, chunked ? "\r\n" : "");
    if (!sent) co_return false;
  }
  if (chunked && !co_await send("0\r\n\r\n")) co_return false;
  co_return !length || written == *length;
}

asio::awaitable<void> session::refuse(int status, std::string_view reason, std::string_view message) {
  keep_alive_ = false;
  auto res = problem(status, reason, message);
  if (status == 405) res.headers.set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  write_head(res, res.body.size(), false);
  auto sent = co_await send(out_, res.body);
  if (sent) co_await linger();
}

asio::awaitable<void> session::finish() {
  set_deadline(phase::writing, std::chrono::seconds(2));
  auto finished = co_await stream_->finish_writing();
  if (!finished) context_->log->debug("http connection ended badly", {{"peer", stream_->peer()}, {"error", finished.error()}});
}

// Lets the peer read the answer before the connection goes: what it still sends is taken in, for a moment.
asio::awaitable<void> session::linger() {
  co_await finish();
  for (std::size_t taken = 0; taken < 1u << 20;) {
    in_.consume(in_.size());
    auto got = co_await receive(16u << 10);
    if (!got || *got == 0) break;
    taken += *got;
  }
}

void session::watch_handler() { handling_since_.store(steady_now(), std::memory_order_relaxed); }

void session::start_watch() {
  if (watching_ || stopped_ || !body_done_ || in_.size() >= watch_buffer_limit) return;
  watching_ = true;
  handling_since_.store(never, std::memory_order_relaxed);
  auto* where = in_.prepare(watch_room);
  stream_->watch(strand_, where, in_.room(),
                 [self = shared_from_this()](result<std::size_t> got) { self->on_watched(std::move(got)); });
}

void session::on_watched(result<std::size_t> got) {
  watching_ = false;
  bool ended_by_us = !got && got.error().code() == errc::cancelled;
  if (got) in_.commit(*got);
  bool gone = !ended_by_us && (!got || *got == 0);
  if (gone && !ended_) {
    stopped_ = true;
    stop_signal_.emit(asio::cancellation_type::terminal);
  } else if (got && !ended_ && !watch_stopping_) {
    start_watch();  // the next request came early; go on watching behind it
  }
  watch_ended_.notify();
}

asio::awaitable<void> session::end_watch() {
  watch_stopping_ = true;
  stream_->stop_watch();
  while (watching_) {
    auto ticket = watch_ended_.ticket();
    if (!watching_) break;
    auto ended = co_await watch_ended_.wait(ticket);
    if (!ended) break;
  }
  watch_stopping_ = false;
}

}  // namespace kubeopera::inline v1::http
