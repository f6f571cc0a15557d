// Publish and subscribe: in this process, or over RabbitMQ.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>
#include <kubeopera/core/secret.hpp>
#include <kubeopera/events/event.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kubeopera::inline v1::events {

/// Handles one event. A value acknowledges it. An error delivers it again after a growing delay; one that cannot get better
/// (invalid_argument, failed_precondition, ... as for the outbox), or the last of the allowed attempts, puts it aside as dead.
using event_handler = std::function<task<void>(const event& e)>;

/// Every event reaches each queue that has a matching pattern at least once, and one of the queue's subscribers.
/// Order is that of publishing for one queue with one subscriber, as long as nothing is delivered again.
/// Thread safety: all members from any thread.
class bus {
 public:
  virtual ~bus() = default;
  /// Returns when the event is safe with the bus (RabbitMQ: confirmed by the broker; in process: in every queue).
  /// Errors: invalid_argument (type is no topic), unavailable (not confirmed: it may or may not have been taken, send it again
  /// with the same id), cancelled.
  virtual task<void> publish(const event& e) = 0;
  /// @param queue    subscribers with one name share its events
  /// @param patterns topics with * and #; those of all subscribers of a queue add up
  virtual void subscribe(std::string queue, std::vector<std::string> patterns, event_handler handler) = 0;
  /// Delivers until cancelled; a broker that is down is waited for. Errors: cancelled.
  virtual task<void> run() = 0;
};

struct bus_options {
  bus_options() = default;
  std::size_t buffer = 10'000;  ///< events that wait (in process: a queue); a full one refuses as unavailable
  int max_attempts = 10;        ///< deliveries of one event to one queue
  duration first_retry = std::chrono::milliseconds(100);
  duration max_retry = std::chrono::seconds(30);
};

/// Not durable: what is in a queue when the process ends is lost. Put an outbox before it.
/// A failing event holds up its subscriber until it is handled or dead.
/// Metrics: kubeopera_bus_published_total{topic}, kubeopera_bus_delivered_total{queue}, _retries_total, _dead_total.
/// Lifetime: log and all must outlive the bus.
std::shared_ptr<bus> make_local_bus(asio::any_io_executor executor, bus_options options = bus_options(),
                                    logger& log = logger::none(), metrics* all = nullptr);

struct rabbitmq_options : bus_options {
  rabbitmq_options() = default;
  std::string host = "localhost";
  int port = 5672;
  std::string virtual_host = "/";
  std::string user = "guest";
  secret password{"guest"};
  std::string exchange = "kubeopera.events";  ///< topic exchange, durable
  int prefetch = 32;                          ///< deliveries under way for one subscriber
  duration publish_timeout = std::chrono::seconds(10);
};

/// From amqp://user:password@host:port/vhost. Errors: invalid_argument (also for amqps, which this build does not speak).
result<rabbitmq_options> parse_rabbitmq_url(std::string_view url);

/// Durable queues, persistent messages, publisher confirms, manual acknowledgement; dead events go to the queue
/// "<queue>.dead". The connection lives on a thread of its own while run() runs, and is made again with growing pauses.
std::shared_ptr<bus> make_rabbitmq_bus(asio::any_io_executor executor, rabbitmq_options options, logger& log = logger::none(),
                                       metrics* all = nullptr);

}  // namespace kubeopera::inline v1::events
