// What has happened: the envelope that travels on the bus.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/json/value.hpp>

#include <string>
#include <string_view>

namespace kubeopera::inline v1::events {

struct event {
  event() = default;
  std::string id;         ///< uuid; receivers that must do a thing once remember it
  std::string type;       ///< topic: words with dots, "app.created"
  std::string tenant_id;  ///< empty: of the platform
  std::string subject;    ///< what it is about
  system_time time{};
  json::object data;
  std::string trace;  ///< W3C traceparent; may be empty
};

/// An event with a new id and the clock's time.
event make_event(std::string type, std::string tenant_id, std::string subject, json::object data,
                 const clock& clk = clock::real());

/// {"id","type","tenant_id","subject","time","data","trace"}; time in UTC with milliseconds.
json::object to_json(const event& e);
/// Unknown members are ignored, so that newer senders can be read.
/// Errors: invalid_argument (reason BadEvent, with violations).
result<event> from_json(std::string_view text);

/// True for one to ten words of letters, digits, '_' and '-' with dots between them, at most 255 bytes.
bool is_topic(std::string_view text) noexcept;
/// AMQP topic rules: '*' is one word, '#' any number of words.
bool topic_matches(std::string_view pattern, std::string_view topic) noexcept;

}  // namespace kubeopera::inline v1::events
