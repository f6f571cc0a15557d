// Reading responses: heads, and bodies of every framing.
#include "src/http/client_connection.hpp"

namespace kubeopera::inline v1::http {

namespace {

constexpr std::size_t max_head = 64u << 10;
constexpr std::size_t piece_size = 64u << 10;

error reset(const char* message) { return {errc::unavailable, "ConnectionReset", message}; }

error malformed(const wire::fault& bad) {
  return error(errc::unavailable, "MalformedResponse", "the response cannot be read").with_detail(bad.message);
}

task<std::size_t> receive(client_connection& c, std::size_t room) {
  auto* where = c.in.prepare(room);
  auto got = co_await c.stream->read_some(where, c.in.room());
  if (got) c.in.commit(*got);
  co_return got;
}

class response_body final : public body_source {
 public:
  response_body(std::shared_ptr<connection_home> home, std::unique_ptr<client_connection> c, wire::body_kind kind,
                std::uint64_t length, bool keep_alive, duration idle_timeout)
      : home_(std::move(home)),
        connection_(std::move(c)),
        kind_(kind),
        left_(length),
        keep_alive_(keep_alive),
        idle_(idle_timeout) {
    if (kind_ == wire::body_kind::none) finish();
  }

  task<std::string> next() override {
    if (failed_) co_return error(*failed_);
    std::string out;
    while (!done_ && out.empty()) {
      auto step = co_await read_step(out);
      if (!step) {
        failed_ = step.error();
        connection_.reset();
        co_return error(*failed_);
      }
    }
    co_return out;
  }

 private:
  task<void> read_step(std::string& out) {
    auto& c = *connection_;
    if (c.in.empty()) {
      auto got = co_await wait_for_bytes(kind_ == wire::body_kind::chunked ? 16u << 10 : piece_size);
      if (!got) co_return got.error();
      if (*got == 0 && kind_ != wire::body_kind::until_close) co_return reset("the response ended before its body");
      if (*got == 0) finish();
      if (*got == 0) co_return result<void>();
    }
    if (kind_ == wire::body_kind::chunked) {
      std::optional<wire::fault> bad;
      c.in.consume(chunks_.feed(c.in.view(), out, piece_size, bad));
      if (bad) co_return malformed(*bad);
      if (chunks_.done()) finish();
    } else {
      auto take = kind_ == wire::body_kind::length ? std::min<std::uint64_t>(left_, c.in.size()) : c.in.size();
      out.assign(c.in.view().substr(0, take));
      c.in.consume(take);
      left_ -= kind_ == wire::body_kind::length ? take : 0;
      if (kind_ == wire::body_kind::length && left_ == 0) finish();
    }
    co_return result<void>();
  }

  task<std::size_t> wait_for_bytes(std::size_t room) {
    if (idle_ == duration::zero()) co_return co_await receive(*connection_, room);
    auto executor = co_await current_executor();
    watchdog dog(executor, *connection_->stream, idle_);
    auto got = co_await receive(*connection_, room);
    if (!got && dog.fired()) co_return error(errc::deadline_exceeded, "StreamTimeout", "the response paused for too long");
    co_return got;
  }

  // Bytes behind the body would be an answer that nobody asked for: such a connection is not used again.
  void finish() {
    done_ = true;
    auto c = std::move(connection_);
    if (keep_alive_ && c->in.empty()) {
      c->in.shrink();
      home_->give_back(std::move(c));
    }
  }

  std::shared_ptr<connection_home> home_;
  std::unique_ptr<client_connection> connection_;
  wire::body_kind kind_;
  std::uint64_t left_;
  bool keep_alive_, done_ = false;
  duration idle_;
  wire::chunk_decoder chunks_;
  std::optional<error> failed_;
};

}  // namespace

task<wire::response_head> read_response_head(client_connection& c, bool to_head) {
  wire::head_scanner scanner;
  for (int interim = 0; interim < 8;) {
    std::optional<wire::fault> bad;
    auto size = scanner.scan(c.in.view(), max_head, bad);
    if (bad) co_return malformed(*bad);
    if (size == 0) {
      auto got = co_await receive(c, 4096);
      if (!got) co_return got.error();
      if (*got == 0) co_return reset("the peer closed the connection before it answered");
      continue;
    }
    wire::response_head head;
    bad = wire::parse_response_head(c.in.view().substr(0, size), to_head, head);
    c.in.consume(size);
    if (bad) co_return malformed(*bad);
    if (head.status == 101) co_return malformed({502, "Upgrade", "an upgrade that was not asked for"});
    if (head.status >= 200) co_return head;
    scanner.reset();
    ++interim;
  }
  co_return malformed({502, "InterimResponses", "too many interim responses"});
}

std::unique_ptr<body_source> make_response_body(std::shared_ptr<connection_home> home, std::unique_ptr<client_connection> c,
                                                wire::body_kind kind, std::uint64_t length, bool keep_alive,
                                                duration idle_timeout) {
  return std::make_unique<response_body>(std::move(home), std::move(c), kind, length, keep_alive, idle_timeout);
}

}  // namespace kubeopera::inline v1::http
