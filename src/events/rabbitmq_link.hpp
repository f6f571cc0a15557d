// One AMQP connection, used by one thread: librabbitmq behind calls that return result. Not here: queues of commands, retries.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/events/bus.hpp>

#include <amqp.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace kubeopera::inline v1::events {

/// A message for a subscriber.
struct incoming {
  int channel = 0;
  std::uint64_t tag = 0;
  std::string body;
};

/// A publisher confirm.
struct confirmation {
  std::uint64_t tag = 0;
  bool multiple = false, accepted = false;
};

class rabbitmq_link {
 public:
  rabbitmq_link() = default;
  ~rabbitmq_link();
  rabbitmq_link(const rabbitmq_link&) = delete;
  rabbitmq_link& operator=(const rabbitmq_link&) = delete;

  /// Connects, logs in, declares the exchange, and selects confirms on channel 1. Blocks for at most a few seconds.
  result<void> open(const rabbitmq_options& o);
  /// Declares the queue, its dead-letter queue and its bindings, and consumes on the channel.
  result<void> consume(int channel, const std::string& queue, const std::vector<std::string>& patterns, int prefetch);
  /// Sends a persistent message. Its confirm has the number of this call, counted from 1.
  result<void> publish(const std::string& topic, const std::string& id, const std::string& body);
  result<void> ack(int channel, std::uint64_t tag);
  /// Sends it to the dead-letter queue.
  result<void> reject(int channel, std::uint64_t tag);
  /// Takes in what has arrived, without waiting.
  result<void> receive(const std::function<void(incoming)>& on_message, const std::function<void(confirmation)>& on_confirm);
  int socket() const noexcept;

 private:
  result<void> reply(const char* what);
  result<void> method(const amqp_frame_t& frame, const std::function<void(confirmation)>& on_confirm);
  amqp_connection_state_t conn_ = nullptr;
  std::string exchange_;
};

}  // namespace kubeopera::inline v1::events
