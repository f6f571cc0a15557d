// librabbitmq calls.
#include "src/events/rabbitmq_link.hpp"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <array>

namespace kubeopera::inline v1::events {
namespace {

constexpr amqp_channel_t publish_channel = 1;

amqp_bytes_t bytes(const std::string& s) { return {s.size(), const_cast<char*>(s.data())}; }

std::string text(amqp_bytes_t b) { return {static_cast<const char*>(b.bytes), b.len}; }

error broken(const char* what, std::string detail) {
  return error(errc::unavailable, "BrokerLost", "the message broker cannot be reached")
      .with_detail(std::string(what) + ": " + std::move(detail))
      .with_retry_after(std::chrono::seconds(2));
}

result<void> status(const char* what, int code) {
  if (code == AMQP_STATUS_OK) return {};
  return broken(what, amqp_error_string2(code));
}

std::string server_words(const amqp_rpc_reply_t& r) {
  if (r.reply.id == AMQP_CONNECTION_CLOSE_METHOD) return text(static_cast<amqp_connection_close_t*>(r.reply.decoded)->reply_text);
  if (r.reply.id == AMQP_CHANNEL_CLOSE_METHOD) return text(static_cast<amqp_channel_close_t*>(r.reply.decoded)->reply_text);
  return "the broker refused";
}

result<void> check(const char* what, const amqp_rpc_reply_t& r) {
  switch (r.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return {};
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      return broken(what, amqp_error_string2(r.library_error));
    case AMQP_RESPONSE_SERVER_EXCEPTION:
      return broken(what, server_words(r));
    case AMQP_RESPONSE_NONE:
      break;
  }
  return broken(what, "the connection ended");
}

amqp_table_entry_t string_entry(const char* key, const std::string& value) {
  amqp_table_entry_t e{};
  e.key = amqp_cstring_bytes(key);
  e.value.kind = AMQP_FIELD_KIND_UTF8;
  e.value.value.bytes = bytes(value);
  return e;
}

}  // namespace

rabbitmq_link::~rabbitmq_link() {
  if (conn_) amqp_destroy_connection(conn_);
}

result<void> rabbitmq_link::reply(const char* what) { return check(what, amqp_get_rpc_reply(conn_)); }

result<void> rabbitmq_link::open(const rabbitmq_options& o) {
  conn_ = amqp_new_connection();
  if (!conn_) throw std::bad_alloc();
  exchange_ = o.exchange;
  auto* socket = amqp_tcp_socket_new(conn_);
  if (!socket) throw std::bad_alloc();
  timeval limit{5, 0};
  amqp_set_handshake_timeout(conn_, &limit);
  amqp_set_rpc_timeout(conn_, &limit);
  KUBEOPERA_CHECK(status("connect", amqp_socket_open_noblock(socket, o.host.c_str(), o.port, &limit)));
  KUBEOPERA_CHECK(check("login", amqp_login(conn_, o.virtual_host.c_str(), 0, 131072, 15, AMQP_SASL_METHOD_PLAIN, o.user.c_str(),
                                            o.password.reveal().c_str())));
  amqp_channel_open(conn_, publish_channel);
  KUBEOPERA_CHECK(reply("open channel"));
  amqp_exchange_declare(conn_, publish_channel, bytes(exchange_), amqp_cstring_bytes("topic"), 0, 1, 0, 0, amqp_empty_table);
  KUBEOPERA_CHECK(reply("declare exchange"));
  amqp_confirm_select(conn_, publish_channel);
  return reply("select confirms");
}

result<void> rabbitmq_link::consume(int channel, const std::string& queue, const std::vector<std::string>& patterns,
                                    int prefetch) {
  auto ch = static_cast<amqp_channel_t>(channel);
  amqp_channel_open(conn_, ch);
  KUBEOPERA_CHECK(reply("open channel"));
  std::string dead = queue + ".dead", nowhere;
  amqp_queue_declare(conn_, ch, bytes(dead), 0, 1, 0, 0, amqp_empty_table);
  KUBEOPERA_CHECK(reply("declare dead-letter queue"));
  std::array entries{string_entry("x-dead-letter-exchange", nowhere), string_entry("x-dead-letter-routing-key", dead)};
  amqp_table_t arguments{static_cast<int>(entries.size()), entries.data()};
  amqp_queue_declare(conn_, ch, bytes(queue), 0, 1, 0, 0, arguments);
  KUBEOPERA_CHECK(reply("declare queue"));
  for (const auto& pattern : patterns) {
    amqp_queue_bind(conn_, ch, bytes(queue), bytes(exchange_), bytes(pattern), amqp_empty_table);
    KUBEOPERA_CHECK(reply("bind queue"));
  }
  amqp_basic_qos(conn_, ch, 0, static_cast<std::uint16_t>(prefetch), 0);
  KUBEOPERA_CHECK(reply("limit deliveries"));
  amqp_basic_consume(conn_, ch, bytes(queue), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
  return reply("consume");
}

result<void> rabbitmq_link::publish(const std::string& topic, const std::string& id, const std::string& body) {
  amqp_basic_properties_t p{};
  p._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  p.content_type = amqp_cstring_bytes("application/json");
  p.delivery_mode = AMQP_DELIVERY_PERSISTENT;
  p.message_id = bytes(id);
  return status("publish", amqp_basic_publish(conn_, publish_channel, bytes(exchange_), bytes(topic), 0, 0, &p, bytes(body)));
}

result<void> rabbitmq_link::ack(int channel, std::uint64_t tag) {
  return status("ack", amqp_basic_ack(conn_, static_cast<amqp_channel_t>(channel), tag, 0));
}

result<void> rabbitmq_link::reject(int channel, std::uint64_t tag) {
  return status("reject", amqp_basic_reject(conn_, static_cast<amqp_channel_t>(channel), tag, 0));
}

result<void> rabbitmq_link::method(const amqp_frame_t& frame, const std::function<void(confirmation)>& on_confirm) {
  if (frame.frame_type != AMQP_FRAME_METHOD) return {};
  const auto& m = frame.payload.method;
  switch (m.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* a = static_cast<amqp_basic_ack_t*>(m.decoded);
      on_confirm({a->delivery_tag, a->multiple != 0, true});
      return {};
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* n = static_cast<amqp_basic_nack_t*>(m.decoded);
      on_confirm({n->delivery_tag, n->multiple != 0, false});
      return {};
    }
    case AMQP_CONNECTION_CLOSE_METHOD:
      return broken("connection closed", text(static_cast<amqp_connection_close_t*>(m.decoded)->reply_text));
    case AMQP_CHANNEL_CLOSE_METHOD:
      return broken("channel closed", text(static_cast<amqp_channel_close_t*>(m.decoded)->reply_text));
    case AMQP_BASIC_CANCEL_METHOD:
      return broken("consumer cancelled", "the queue is gone");
    default:
      return {};
  }
}

result<void> rabbitmq_link::receive(const std::function<void(incoming)>& on_message,
                                    const std::function<void(confirmation)>& on_confirm) {
  while (true) {
    amqp_maybe_release_buffers(conn_);
    timeval now{0, 0};
    amqp_envelope_t envelope{};
    auto r = amqp_consume_message(conn_, &envelope, &now, 0);
    if (r.reply_type == AMQP_RESPONSE_NORMAL) {
      on_message({envelope.channel, envelope.delivery_tag, text(envelope.message.body)});
      amqp_destroy_envelope(&envelope);
      continue;
    }
    if (r.reply_type != AMQP_RESPONSE_LIBRARY_EXCEPTION) return check("receive", r);
    if (r.library_error == AMQP_STATUS_TIMEOUT) return {};
    if (r.library_error != AMQP_STATUS_UNEXPECTED_STATE) return status("receive", r.library_error);
    // Something that is no delivery: it has been left for us.
    amqp_frame_t frame{};
    int code = amqp_simple_wait_frame_noblock(conn_, &frame, &now);
    if (code == AMQP_STATUS_TIMEOUT) return {};
    KUBEOPERA_CHECK(status("receive", code));
    KUBEOPERA_CHECK(method(frame, on_confirm));
  }
}

int rabbitmq_link::socket() const noexcept { return amqp_get_sockfd(conn_); }

}  // namespace kubeopera::inline v1::events
