// One connection of a server: reads requests, calls the handler, writes responses. Lives on its own strand.
#pragma once

#include "src/http/stream.hpp"
#include "src/http/wire.hpp"

#include <kubeopera/http/server.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

namespace kubeopera::inline v1::http {

/// What all sessions of a server share.
struct server_context {
  server_context() = default;
  server_options options;
  handler handle;
  logger* log = nullptr;
  std::atomic<bool> draining{false};
};

class session : public std::enable_shared_from_this<session> {
 public:
  /// It lives on a strand of io. tick() and stop() may be called from now on, also before start().
  session(std::shared_ptr<server_context> context, std::unique_ptr<byte_stream> stream, asio::any_io_executor io);

  /// Starts it; on_end is called on its strand when the connection is over.
  static void start(std::shared_ptr<session> self, std::function<void()> on_end);
  /// Looks at deadlines. Any thread, a few times a second.
  void tick(std::int64_t now);
  /// Ends it: at once, or, when only_idle, where no request is in progress or its answer has no end. Any thread.
  void stop(bool only_idle);

  /// The request body's next piece, for the body source of a streaming route.
  task<std::string> next_body_piece(std::uint64_t exchange);

 private:
  static constexpr auto never = std::numeric_limits<std::int64_t>::max();
  enum class phase { handshake, idle, head, body, handling, writing };

  asio::awaitable<void> serve();
  /// One request and its response. False when the connection is to be closed.
  asio::awaitable<bool> exchange();
  /// False at the end of the connection; a fault has been answered then.
  asio::awaitable<bool> read_head(wire::request_head& head);
  asio::awaitable<bool> prepare_body(wire::request_head& head, request& req);
  task<std::string> read_body_piece();
  task<std::string> take_body_bytes();
  task<std::size_t> receive(std::size_t room);
  task<std::size_t> receive_body();
  asio::awaitable<response> call_handler(request req);
  asio::awaitable<bool> respond(response res, bool to_head);
  asio::awaitable<bool> respond_stream(response& res, std::optional<std::uint64_t> length);
  asio::awaitable<bool> pump(body_source& source, std::optional<std::uint64_t> length, bool chunked);
  asio::awaitable<void> refuse(int status, std::string_view reason, std::string_view message);
  asio::awaitable<void> finish();
  asio::awaitable<void> linger();
  void write_head(const response& res, std::optional<std::uint64_t> length, bool chunked);
  task<void> send(std::string_view a, std::string_view b = {}, std::string_view c = {});

  void run(std::function<void()> on_end);
  void end(const std::function<void()>& on_end);
  void start_watch();
  /// The handler is running and the request is complete: should it take long, look whether the client is still there.
  void watch_handler();
  void on_watched(result<std::size_t> got);
  asio::awaitable<void> end_watch();
  void expire();
  void set_deadline(phase p, duration time);
  void clear_deadline(phase p);

  std::shared_ptr<server_context> context_;
  std::unique_ptr<byte_stream> stream_;
  asio::any_io_executor strand_;
  asio::cancellation_signal stop_signal_;

  read_buffer in_;
  std::string out_;
  wire::head_scanner scanner_;
  phase phase_ = phase::handshake;
  std::atomic<std::int64_t> deadline_{never};        // steady nanoseconds
  std::atomic<std::int64_t> handling_since_{never};  // never: not in the handler, or watched already
  bool timed_out_ = false;                           // a read was ended by expire()
  bool stopped_ = false;                             // the coroutine was told to stop
  bool watching_ = false, watch_stopping_ = false;
  bool ended_ = false;
  bool endless_ = false;  // what is being answered
  notifier watch_ended_;

  std::string sni_, client_certificate_;

  // The present exchange.
  std::uint64_t exchange_ = 0;
  bool http_1_0_ = false, keep_alive_ = true, wanted_keep_alive_ = false;
  wire::body_kind body_ = wire::body_kind::none;
  std::uint64_t body_left_ = 0;
  std::size_t body_limit_ = 0, body_received_ = 0;
  duration body_waited_{};
  bool body_done_ = true, body_failed_ = false, continue_due_ = false;
  wire::chunk_decoder chunks_;
};

}  // namespace kubeopera::inline v1::http
