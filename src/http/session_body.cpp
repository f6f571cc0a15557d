// Request bodies of a session: whole, or as a stream while they arrive; limits and the slowest rate allowed.
#include "src/http/session.hpp"

#include <chrono>

namespace kubeopera::inline v1::http {

namespace {

constexpr std::size_t piece_size = 64u << 10;

// Lives in request.stream. After its exchange is over it only says so.
class request_body final : public body_source {
 public:
  request_body(std::shared_ptr<session> s, std::uint64_t exchange) : session_(std::move(s)), exchange_(exchange) {}
  task<std::string> next() override { return session_->next_body_piece(exchange_); }

 private:
  std::shared_ptr<session> session_;
  std::uint64_t exchange_;
};

error too_large(std::size_t limit) {
  return {errc::too_large, "BodyTooLarge", "the request's body is larger than " + std::to_string(limit) + " bytes"};
}

int status_of(const error& e) {
  switch (e.code()) {
    case errc::too_large:
      return 413;
    case errc::deadline_exceeded:
      return 408;
    case errc::invalid_argument:
      return 400;
    default:
      return 0;  // the peer is gone
  }
}

}  // namespace

asio::awaitable<bool> session::prepare_body(wire::request_head& head, request& req) {
  body_ = head.body;
  body_left_ = head.content_length;
  body_received_ = 0;
  body_waited_ = {};
  chunks_ = {};
  body_done_ = body_ == wire::body_kind::none;
  continue_due_ = head.expect_continue;
  if (body_done_) co_return true;
  auto rule = context_->options.body_rule_for ? context_->options.body_rule_for(head.method, head.target) : body_rule();
  body_limit_ = rule.max_bytes;
  if (body_ == wire::body_kind::length && head.content_length > body_limit_) {
    auto e = too_large(body_limit_);
    co_await refuse(413, e.reason(), e.message());
    co_return false;
  }
  if (rule.stream) {
    req.stream = std::make_unique<request_body>(shared_from_this(), exchange_);
    co_return true;
  }
  if (body_ == wire::body_kind::length) req.body.reserve(std::min<std::uint64_t>(head.content_length, 1u << 20));
  for (;;) {
    auto piece = co_await read_body_piece();
    if (!piece) {
      if (int status = status_of(piece.error())) co_await refuse(status, piece.error().reason(), piece.error().message());
      co_return false;
    }
    if (piece->empty()) co_return true;
    if (req.body.empty() && body_done_)
      req.body = std::move(*piece);
    else
      req.body += *piece;
  }
}

task<std::string> session::next_body_piece(std::uint64_t exchange) {
  if (exchange != exchange_) {
    co_return error(errc::unavailable, "ExchangeOver", "the request has been answered already");
  }
  auto before = phase_;
  auto piece = co_await read_body_piece();
  clear_deadline(before);
  if (body_done_ && before == phase::handling) watch_handler();
  co_return piece;
}

// The next piece, or an empty one at the end.
task<std::string> session::read_body_piece() {
  if (body_failed_) co_return error(errc::unavailable, "ConnectionReset", "the request's body could not be read");
  if (body_done_) co_return std::string();
  if (continue_due_) {
    continue_due_ = false;
    KUBEOPERA_CO_CHECK(co_await send("HTTP/1.1 100 Continue\r\n\r\n"));
  }
  auto piece = co_await take_body_bytes();
  if (!piece) body_failed_ = true;
  co_return piece;
}

task<std::string> session::take_body_bytes() {
  std::string out;
  while (!body_done_ && out.empty()) {
    if (in_.empty()) {
      auto got = co_await receive_body();
      if (!got) co_return got.error();
      if (*got == 0) co_return error(errc::unavailable, "ConnectionReset", "the request ended before its body");
    }
    if (body_ == wire::body_kind::length) {
      auto take = std::min<std::uint64_t>(body_left_, in_.size());
      out.assign(in_.view().substr(0, take));
      in_.consume(take);
      body_left_ -= take;
      body_done_ = body_left_ == 0;
    } else {
      std::optional<wire::fault> bad;
      in_.consume(chunks_.feed(in_.view(), out, piece_size, bad));
      if (bad) co_return error(errc::invalid_argument, bad->reason, bad->message);
      body_done_ = chunks_.done();
    }
    body_received_ += out.size();
    if (body_received_ > body_limit_) co_return too_large(body_limit_);
  }
  co_return out;
}

// Waiting for the peer costs it time that it earns back with every byte.
task<std::size_t> session::receive_body() {
  const auto& options = context_->options;
  auto rate = std::max<std::size_t>(options.min_body_rate, 1);
  auto allowed = options.head_timeout + std::chrono::milliseconds(body_received_ * 1000 / rate);
  auto start = std::chrono::steady_clock::now();
  set_deadline(phase::body, allowed - body_waited_);
  auto got = co_await receive(body_received_ > 0 ? piece_size : 16u << 10);
  body_waited_ += std::chrono::steady_clock::now() - start;
  clear_deadline(phase::handling);
  if (!got && timed_out_) co_return error(errc::deadline_exceeded, "RequestTimeout", "the request's body arrived too slowly");
  co_return got;
}

}  // namespace kubeopera::inline v1::http
