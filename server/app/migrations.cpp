#include "server/app/migrations.hpp"

#include <kubeopera/events/outbox.hpp>

namespace kubeopera::inline v1 {

std::vector<postgres::migration> api_migrations();  // made by the build from services/api/migrations

namespace app {

std::vector<postgres::migration> api_schema_migrations() {
  auto all = api_migrations();
  all.push_back({100, "outbox", events::outbox_sql});
  all.push_back({101, "outbox indexes", events::outbox_indexes_sql});
  return all;
}

}  // namespace app
}  // namespace kubeopera::inline v1
