// The timekeeper of an execution context, kept as a service of it.
#include "src/core/alarm.hpp"

#include <boost/asio/execution_context.hpp>

#include <atomic>

namespace kubeopera::inline v1 {
namespace {

// How many contexts have one. While there is none, which is always so in production, nobody looks further.
std::atomic<int> kept_contexts{0};

class time_service final : public asio::execution_context::service {
 public:
  static asio::execution_context::id id;
  explicit time_service(asio::execution_context& owner) : service(owner) { ++kept_contexts; }
  ~time_service() override { --kept_contexts; }
  timekeeper* keeper = nullptr;

 private:
  void shutdown() override {}
};

asio::execution_context::id time_service::id;

}  // namespace

void keep_time(asio::execution_context& context, timekeeper& keeper) {
  asio::use_service<time_service>(context).keeper = &keeper;
}

namespace detail {

timekeeper* timekeeper_of(const asio::any_io_executor& executor) {
  if (kept_contexts.load(std::memory_order_relaxed) == 0) return nullptr;
  auto& context = asio::query(executor, asio::execution::context);
  if (!asio::has_service<time_service>(context)) return nullptr;
  return asio::use_service<time_service>(context).keeper;
}

}  // namespace detail

}  // namespace kubeopera::inline v1
