// Writes that need permission.
#include "tests/unit/kube/kit.hpp"

#include <kubeopera/kube/gated_client.hpp>

using namespace kubeopera;
using namespace kubeopera::kube_test;

TEST(gated_client, writes_pass_while_the_gate_is_open_and_reads_always) {
  auto transport = std::make_shared<scripted_transport>();
  bool open = true;
  auto gate = [&open]() -> result<void> {
    if (open) return {};
    return error(errc::cancelled, "NotLeading", "not any more");
  };
  auto c = kube::make_gated_client(kube::make_client(transport), gate);
  const auto& type = kube::types::config_maps();
  auto o = config_map("a", "1");
  kube::object_key key{"ns", "a"};
  for (int i = 0; i < 6; ++i) transport->then(200, json::write(o));
  EXPECT_TRUE(run(c->create(type, o)));
  EXPECT_TRUE(run(c->replace(type, o)));
  EXPECT_TRUE(run(c->patch(type, key, kube::patch_kind::merge, json::object{})));
  EXPECT_TRUE(run(c->apply(type, o)));
  EXPECT_TRUE(run(c->remove(type, key)));
  open = false;
  EXPECT_TRUE(run(c->get(type, key)));
  EXPECT_EQ(transport->all().size(), 6u);
  EXPECT_EQ(run(c->create(type, o)).error().reason(), "NotLeading");
  EXPECT_EQ(run(c->replace(type, o)).error().reason(), "NotLeading");
  EXPECT_EQ(run(c->patch(type, key, kube::patch_kind::merge, json::object{})).error().reason(), "NotLeading");
  EXPECT_EQ(run(c->apply(type, o)).error().reason(), "NotLeading");
  EXPECT_EQ(run(c->remove(type, key)).error().reason(), "NotLeading");
  EXPECT_EQ(transport->all().size(), 6u) << "nothing was sent";
}
