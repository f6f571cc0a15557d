// Packs, indexes and trees of ours, judged by git itself.
#include "src/gitops/pack.hpp"

#include "src/gitops/compact.hpp"
#include "src/gitops/tree.hpp"
#include "tests/unit/gitops/git_tool.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace kubeopera;
using namespace kubeopera::gitops::detail;
using namespace git_tool;

namespace {

using file_map = std::map<std::string, std::string>;

// Trees kept in memory, as an editor wants to read them.
struct memory_trees {
  std::map<oid, std::string> trees;
  int reads = 0;
  tree_access access() {
    tree_access out;
    out.read = [this](const oid& id) -> result<std::shared_ptr<const std::string>> {
      ++reads;
      auto it = trees.find(id);
      if (it == trees.end()) return error(errc::not_found, "ObjectNotFound", id.hex());
      return std::make_shared<const std::string>(it->second);
    };
    out.made = [this](const oid& id, std::shared_ptr<const std::string> bytes) { trees[id] = *bytes; };
    return out;
  }
};

edited_tree edit(memory_trees& trees, std::optional<oid> base, const std::map<std::string, file_map>& what, pack_builder& pack) {
  std::vector<directory_edit> edits;
  for (const auto& [directory, files] : what) edits.push_back({directory, &files});
  auto access = trees.access();
  auto got = edit_tree(base, edits, access, pack);
  EXPECT_TRUE(got) << to_string(got.error());
  return got ? *got : edited_tree();
}

// Puts a finished pack into a fresh repository of git's.
void install(const finished_pack& done, const std::string& repository) {
  if (!std::filesystem::exists(repository)) git(".", "init -q --bare '" + repository + "'");
  write_file(repository + "/objects/pack/pack-" + done.name + ".pack", done.pack);
  write_file(repository + "/objects/pack/pack-" + done.name + ".idx", done.index);
}

}  // namespace

TEST(pack, ids_are_gits) {
  temp_folder dir;
  write_file(dir / "f", "hello\n");
  EXPECT_EQ(hash_object(object_type::blob, "hello\n").hex(), git(dir.str(), "hash-object f"));
  EXPECT_EQ(hash_object(object_type::tree, "").hex(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
}

TEST(pack, index_equals_the_one_git_makes) {
  temp_folder dir;
  std::mt19937 random(7);
  for (int objects : {1, 2, 300, 5000}) {
    pack_builder pack;
    for (int i = 0; i < objects; ++i)
      pack.add(object_type::blob, std::string(random() % 3000, static_cast<char>('a' + i % 26)) + std::to_string(i));
    pack.add(object_type::blob, "once");
    pack.add(object_type::blob, "once");
    auto done = pack.finish();
    write_file(dir / "p.pack", done.pack);
    auto name = git(dir.str(), "index-pack --strict -o p.idx p.pack");
    EXPECT_NE(name.find(done.name), std::string::npos);
    EXPECT_EQ(read_file(dir / "p.idx"), done.index) << objects << " objects";
    std::filesystem::remove(dir / "p.idx");
  }
}

TEST(pack, index_reads_back_in_order_of_offset) {
  pack_builder pack;
  auto first = pack.add(object_type::blob, "first"), second = pack.add(object_type::blob, "second");
  auto done = pack.finish();
  auto entries = parse_pack_index(done.index);
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].id, first);
  EXPECT_EQ((*entries)[0].offset, 12u);
  EXPECT_EQ((*entries)[1].id, second);
  for (std::size_t cut : {std::size_t(0), std::size_t(8), std::size_t(1000), done.index.size() - 41})
    EXPECT_FALSE(parse_pack_index(std::string_view(done.index).substr(0, cut))) << cut;
}

TEST(pack, large_offsets_use_the_second_table) {
  std::vector<pack_entry> entries(2);
  entries[0].id.bytes[0] = 1;
  entries[0].offset = 12;
  entries[1].id.bytes[0] = 2;
  entries[1].offset = 0x1234567890ull;
  auto back = parse_pack_index(make_pack_index(entries, oid()));
  ASSERT_TRUE(back);
  EXPECT_EQ((*back)[1].offset, 0x1234567890ull);
}

TEST(tree, order_is_gits) {
  // git sorts directories as if they ended in '/': "a-b" < "a" (directory) < "a0".
  EXPECT_TRUE(tree_less("a-b", false, "a", true));
  EXPECT_TRUE(tree_less("a", true, "a0", false));
  EXPECT_TRUE(tree_less("a", false, "a-b", false));
  EXPECT_FALSE(tree_less("a", true, "a", true));
}

TEST(tree, edits_equal_what_git_would_write) {
  temp_folder dir;
  memory_trees trees;
  std::mt19937 random(11);
  std::map<std::string, file_map> state;  // directory to files
  std::optional<oid> root;
  auto repository = dir / "r.git";
  for (int round = 0; round < 30; ++round) {
    std::map<std::string, file_map> edits;
    for (unsigned i = 0, n = 1 + random() % 6; i < n; ++i) {
      static const char* tops[] = {"a", "a-b", "a0", "ab", "b"};
      std::string directory = std::string(tops[random() % 5]) + "/" + tops[random() % 5] + "/x" + std::to_string(random() % 4);
      file_map files;
      for (unsigned f = 0, m = random() % 4; f < m; ++f)
        files["f" + std::to_string(f) + ".yaml"] = "v" + std::to_string(random() % 3);
      edits[directory] = files;
    }
    pack_builder pack;
    auto got = edit(trees, root, edits, pack);
    bool any = false;
    std::size_t i = 0;
    for (const auto& [directory, files] : edits) {
      bool differs = state[directory] != files;
      EXPECT_EQ(got.changed[i++], differs) << directory;
      any |= differs;
      state[directory] = files;
    }
    EXPECT_EQ(got.any(), any);
    if (root) {
      EXPECT_EQ(got.root != *root, any);
    }
    root = got.root;
    install(pack.finish(), repository);
    // The same state written by git from a worktree.
    std::filesystem::remove_all(dir / "w");
    std::filesystem::create_directories(dir / "w");
    for (const auto& [directory, files] : state)
      for (const auto& [name, content] : files) write_file((dir / "w") + "/" + directory + "/" + name, content);
    auto expected = git(repository, "--work-tree='" + (dir / "w") + "' add -A . && git -C '" + repository + "' write-tree");
    ASSERT_EQ(root->hex(), expected) << "round " << round;
  }
  EXPECT_EQ(fsck(repository), "");
}

TEST(tree, reads_only_the_trees_on_the_path) {
  memory_trees trees;
  std::map<std::string, file_map> all;
  for (int i = 0; i < 500; ++i)
    all["c/v" + std::to_string(i % 5) + "/s" + std::to_string(i % 20) + "/app" + std::to_string(i)] = {{"a.yaml", "1"}};
  pack_builder first;
  auto base = edit(trees, std::nullopt, all, first);
  trees.reads = 0;
  pack_builder second;
  auto next = edit(trees, base.root, {{"c/v1/s1/app1", {{"a.yaml", "2"}}}}, second);
  EXPECT_EQ(trees.reads, 5);      // root, c, v1, s1, app1
  EXPECT_EQ(second.count(), 6u);  // those five anew and one blob
  EXPECT_TRUE(next.any());
}

TEST(tree, unchanged_content_makes_no_object) {
  memory_trees trees;
  pack_builder first, second, third;
  auto base = edit(trees, std::nullopt, {{"c/app", {{"a.yaml", "1"}, {"b.yaml", "2"}}}}, first);
  auto same = edit(trees, base.root, {{"c/app", {{"a.yaml", "1"}, {"b.yaml", "2"}}}}, second);
  EXPECT_EQ(same.root, base.root);
  EXPECT_FALSE(same.any());
  EXPECT_EQ(second.count(), 0u);
  edit(trees, base.root, {{"c/app", {{"a.yaml", "1"}, {"b.yaml", "3"}}}}, third);
  EXPECT_EQ(third.count(), 4u);  // one blob, app, c, root: the other blob is there already
}

TEST(tree, removing_the_last_file_removes_empty_parents) {
  memory_trees trees;
  pack_builder pack;
  auto base = edit(trees, std::nullopt, {{"c/x/app", {{"a", "1"}}}, {"d/app", {{"a", "1"}}}}, pack);
  auto without = edit(trees, base.root, {{"c/x/app", {}}}, pack);
  auto items = parse_tree(trees.trees[without.root]);
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 1u);
  EXPECT_EQ((*items)[0].name, "d");
  auto empty = edit(trees, without.root, {{"d/app", {}}}, pack);
  EXPECT_EQ(empty.root.hex(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
}

TEST(tree, a_file_in_the_way_fails_its_edit_alone) {
  memory_trees trees;
  pack_builder pack;
  std::string bytes;
  append_tree_entry(bytes, mode_file, "c", hash_object(object_type::blob, ""));
  auto base = hash_object(object_type::tree, bytes);
  trees.trees[base] = bytes;
  auto got = edit(trees, base, {{"c/app", {{"a", "1"}}}, {"d/app", {{"a", "1"}}}}, pack);
  ASSERT_TRUE(got.failed[0]);
  EXPECT_EQ(got.failed[0]->code(), errc::failed_precondition);
  EXPECT_FALSE(got.failed[1]);
  EXPECT_TRUE(got.changed[1]);
  EXPECT_NE(trees.trees[got.root].find("100644 c"), std::string::npos);
}

TEST(tree, damaged_bytes_are_refused) {
  std::string good;
  append_tree_entry(good, mode_file, "a", oid());
  EXPECT_TRUE(parse_tree(good));
  for (std::size_t n = 1; n < good.size(); ++n) EXPECT_FALSE(parse_tree(std::string_view(good).substr(0, n))) << n;
  EXPECT_FALSE(parse_tree(std::string("100644 a/b\0", 11) + std::string(20, 'x')));
  EXPECT_FALSE(parse_tree(std::string("9 a\0", 4) + std::string(20, 'x')));
}

TEST(tree, cache_forgets_the_least_used) {
  tree_cache cache(3 * 1100);
  std::vector<oid> ids(4);
  for (std::size_t i = 0; i < 4; ++i) ids[i].bytes[0] = static_cast<unsigned char>(i);
  for (std::size_t i = 0; i < 3; ++i) cache.put(ids[i], std::make_shared<const std::string>(1000, 'x'));
  EXPECT_TRUE(cache.get(ids[0]));
  cache.put(ids[3], std::make_shared<const std::string>(1000, 'x'));
  EXPECT_TRUE(cache.get(ids[0]));
  EXPECT_FALSE(cache.get(ids[1]));
}
