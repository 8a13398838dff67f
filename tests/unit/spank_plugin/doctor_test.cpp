// What `sailor doctor` makes of files and of a cluster that is described by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "spank_plugin/doctor/plugstack.h"
#include "spank_plugin/doctor/program_checks.h"
#include "spank_plugin/doctor/site_checks.h"
#include "spank_plugin/doctor/slurm_checks.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

std::vector<Finding::Level> levels(const Findings& findings) {
  std::vector<Finding::Level> result;
  for (const Finding& f : findings) result.push_back(f.level);
  return result;
}

constexpr auto kOk = Finding::Level::ok;
constexpr auto kWarning = Finding::Level::warning;
constexpr auto kProblem = Finding::Level::problem;

TEST(ProgramChecks, ALoginNodeMayBeWithoutTheTrainerAComputeNodeMayNot) {
  const std::vector<ProgramState> none = {{"run", "", false}, {"checkpoint", "", false}};
  const Findings login = check_programs(none, "", /*compute_node=*/false);
  EXPECT_THAT(levels(login), ElementsAre(Finding::Level::note));
  EXPECT_FALSE(has_problems(login));
  EXPECT_THAT(to_text(login), HasSubstr("note     programs"));
  EXPECT_THAT(levels(parse_lines(to_lines(login))), ElementsAre(Finding::Level::note));
  EXPECT_THAT(levels(check_programs(none, "", true)), ElementsAre(kProblem, kProblem, kProblem));
}

TEST(ProgramChecks, HalfATrainerIsAProblemAnywhere) {
  const std::vector<ProgramState> half = {{"run", "/x/sailor-run", true}, {"checkpoint", "", false}};
  EXPECT_THAT(levels(check_programs(half, "/bin/mpirun", false)), ElementsAre(kProblem, kOk));
  const std::vector<ProgramState> broken = {{"run", "/x/sailor-run", false}};
  const Findings findings = check_programs(broken, "/bin/mpirun", false);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_THAT(findings[0].remedy, HasSubstr("ldd /x/sailor-run"));
  const std::vector<ProgramState> whole = {{"run", "/x/sailor-run", true}};
  EXPECT_THAT(levels(check_programs(whole, "/bin/mpirun", true)), ElementsAre(kOk, kOk));
  EXPECT_EQ(check_programs(whole, "/bin/mpirun", true)[0].text, "/x/sailor-*");
}

TEST(Plugstack, IncludesAreFollowedRelativeToTheFileAndCommentsAreNone) {
  const std::string dir = test::scratch_directory("plugstack");
  write(
      dir + "/plugstack.conf",
      "# optional commented.so\nrequired /a/b.so x=1 y  # why\n\ninclude more.d/*.conf\ninclude absent.conf\n"
      "optional last.so\n");
  write(dir + "/more.d/1.conf", "optional one.so\ninclude ../plugstack.conf\n");
  write(dir + "/more.d/2.conf", "\noptional two.so\n");
  const std::vector<PlugstackEntry> entries = read_plugstack(dir + "/plugstack.conf");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_TRUE(entries[0].required);
  EXPECT_EQ(entries[0].path, "/a/b.so");
  EXPECT_THAT(entries[0].arguments, ElementsAre("x=1", "y"));
  EXPECT_EQ(entries[1].path, "one.so");
  EXPECT_EQ(entries[2].path, "two.so");
  EXPECT_EQ(entries[2].where.text(), dir + "/more.d/2.conf:2");
  EXPECT_FALSE(entries[3].required);
}

TEST(Plugstack, WhatIsWrongWithOurLineIsSaidWithTheRemedy) {
  const std::string dir = test::scratch_directory("plugstack-lines");
  const std::string file = dir + "/plugstack.conf";
  const auto check = [&](const std::string& text) {
    write(file, text);
    return check_plugstack(file, dir + "/none:" + dir, 0x160500);
  };
  EXPECT_THAT(levels(check_plugstack(dir + "/absent.conf", dir, 0x160500)), ElementsAre(kProblem));
  EXPECT_THAT(levels(check("optional other.so\n")), ElementsAre(kProblem));
  EXPECT_THAT(check("optional other.so\n")[0].remedy, HasSubstr("include /etc/slurm"));
  const Findings absent = check("optional /nowhere/spank_sailor.so\n");
  EXPECT_THAT(levels(absent), ElementsAre(kProblem));
  EXPECT_EQ(absent[0].text, file + ":1: there is no /nowhere/spank_sailor.so");
  write(dir + "/spank_sailor.so", "no library");
  const Findings twice = check("required spank_sailor.so\noptional spank_sailor.so\n");
  EXPECT_THAT(levels(twice), ElementsAre(kProblem, kWarning, kProblem)) << "twice, required, no library";
}

TEST(Plugstack, ThePlannersLibraryMustLoad) {
  const std::string dir = test::scratch_directory("planner-library");
  const auto reason = [](const std::string& library) -> std::string {
    try {
      check_planner_library(library);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(reason(dir + "/sailor_planner.so"), HasSubstr("No such file"));
  write(dir + "/sailor_planner.so", "no library");
  EXPECT_THAT(reason(dir + "/sailor_planner.so"), HasSubstr(dir + "/sailor_planner.so"));
  EXPECT_EQ(reason(SAILOR_LIBRARY_DIR "/sailor_planner.so"), "");
}

TEST(Plugstack, ReleasesAreTwoNumbers) {
  EXPECT_EQ(release_of(0x160508), "22.05");
  EXPECT_EQ(release_of(version_number("23.11.0-rc1")), "23.11");
  EXPECT_EQ(version_number("22.05.8"), 0x160508u);
  EXPECT_EQ(version_number("unknown"), 0u);
}

// The texts of findings that contain `word`, counted.
size_t about(const Findings& findings, const std::string& word) {
  return static_cast<size_t>(std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.text.find(word) != std::string::npos && !finding.remedy.empty();
  }));
}

TEST(SlurmChecks, TellWhatSettingsMeanForPlannedJobs) {
  SlurmSettings settings;
  settings.scheduler = "sched/backfill";
  settings.scheduler_parameters = "bf_max_job_test=500,bf_interval=30,deferred_is_no_word";
  EXPECT_THAT(check_scheduling(settings), testing::IsEmpty());
  settings.scheduler_parameters = "defer,bf_interval=600";
  settings.jobs_are_private = settings.nodes_are_private = settings.reservations_are_private = true;
  const Findings findings = check_scheduling(settings);
  EXPECT_EQ(findings.size(), 5u);
  for (const char* word : {"has defer:", "bf_interval=600", "has jobs", "has nodes", "has reservations"})
    EXPECT_EQ(about(findings, word), 1u) << word;
  EXPECT_FALSE(has_problems(findings));
  settings.scheduler = "sched/builtin";
  EXPECT_EQ(about(check_scheduling(settings), "sched/builtin"), 1u);
}

TEST(SlurmChecks, CgroupConfIsReadAsSlurmReadsIt) {
  EXPECT_THAT(check_cgroups("# ConstrainRAMSpace=yes\nConstrainDevices=yes\n"), testing::IsEmpty());
  EXPECT_EQ(about(check_cgroups(" constrainramspace = Yes # all\n"), "ConstrainRAMSpace"), 1u);
  EXPECT_THAT(check_cgroups("ConstrainRAMSpace=yes\nConstrainRAMSpace=no\n"), testing::IsEmpty());
  EXPECT_THAT(check_cgroups(""), testing::IsEmpty());
}

TEST(Findings, AnotherDoctorReadsThem) {
  const Findings findings = {well("a", "b"), warning("c", "d\te\nf", "g"), problem("h", "i", "j")};
  const Findings read = parse_lines("some noise\n" + to_lines(findings) + "more\tnoise\n");
  EXPECT_THAT(levels(read), ElementsAre(kOk, kWarning, kProblem));
  EXPECT_EQ(read[1].text, "d e f");
  EXPECT_EQ(read[1].remedy, "g");
  EXPECT_TRUE(has_problems(read));
  EXPECT_FALSE(has_problems({findings[0], findings[1]}));
  EXPECT_EQ(to_text({problem("plugin", "is gone", "install it")}),
            "problem  plugin     is gone\n                    -> install it\n");
}

struct SiteFiles : testing::Test {
  const std::string dir = test::scratch_directory("site");
  SlurmView cluster;
  SiteFiles() {
    write(dir + "/sailor.yaml",
          "sailor_site: 1\ncatalog: catalog.yaml\nprofiles: [profiles]\ngres: {big: BIG-80}\n");
    write(dir + "/catalog.yaml",
          "sailor_catalog: 1\ngpu_types:\n  BIG-80: {memory: 80GiB}\n"
          "  small: {memory: 8GiB, emulate: {profile: cpu, slowdown: 10}}\n");
    std::filesystem::create_directories(dir + "/profiles");
    add("n1", "gpu:big:4");
    add("n2", "gpu:big:4(S:0-1)");
    add("n3", "gpu:small:2,shard:8");
    add("n4", "");
  }
  void add(const std::string& name, const std::string& gres) {
    SlurmNode node;
    node.name = name;
    node.gres = gres;
    cluster.nodes.push_back(node);
  }
  Site site() {
    Findings findings;
    std::optional<Site> loaded = check_site(dir + "/sailor.yaml", findings);
    EXPECT_THAT(levels(findings), ElementsAre(kOk, kOk));
    return *loaded;
  }
};

TEST_F(SiteFiles, ABrokenOneIsAProblemWithItsLine) {
  write(dir + "/catalog.yaml", "sailor_catalog: 1\ngpu_types:\n  BIG-80: {memory: many}\n");
  Findings findings;
  EXPECT_FALSE(check_site(dir + "/sailor.yaml", findings).has_value());
  EXPECT_THAT(levels(findings), ElementsAre(kProblem));
  EXPECT_THAT(findings[0].text, HasSubstr("catalog.yaml:3"));
}

TEST_F(SiteFiles, EveryGresTypeIsAGpuTypeOrTheAdminIsToldHow) {
  EXPECT_THAT(levels(check_gres(site(), cluster)), ElementsAre(kOk, kOk));
  add("n5", "gpu:odd:1");
  add("n6", "gpu:2");
  const Findings findings = check_gres(site(), cluster);
  EXPECT_THAT(levels(findings), ElementsAre(kProblem, kOk, kProblem, kOk));
  EXPECT_THAT(findings[0].text, HasSubstr("have no type"));
  EXPECT_THAT(findings[2].remedy, HasSubstr("gres: {odd: NAME}"));
  EXPECT_THAT(levels(check_gres(site(), SlurmView{})), ElementsAre(kProblem));
}

TEST_F(SiteFiles, ProfilesAreCountedByWhatTheyMeasured) {
  EXPECT_THAT(levels(check_profiles(site(), cluster)), ElementsAre(kWarning, kWarning, kWarning));
  write(dir + "/profiles/network.json",
        R"({"sailor_network_profile": 1, "links": [{"scope": "any", "bytes_per_s": 1e9}]})");
  write(dir + "/profiles/m.cpu.json",
        R"({"sailor_layer_profile": 1, "gpu_type": "cpu", "precision": "fp32",
            "model": {"family": "f", "hidden": 8, "heads": 2, "feed_forward": 8, "sequence": 8, "vocabulary": 8},
            "times": [{"microbatch": 1, "tp": 1, "layer": "embedding", "forward_s": 1, "backward_s": 1, "update_s": 1},
                      {"microbatch": 1, "tp": 1, "layer": "block", "forward_s": 1, "backward_s": 1, "update_s": 1},
                      {"microbatch": 1, "tp": 1, "layer": "head", "forward_s": 1, "backward_s": 1, "update_s": 1}],
            "sizes": [{"tp": 1, "layer": "embedding", "parameters": 1, "output_elements": 1, "activation_bytes": 1},
                      {"tp": 1, "layer": "block", "parameters": 1, "output_elements": 1, "activation_bytes": 1},
                      {"tp": 1, "layer": "head", "parameters": 1, "output_elements": 1, "activation_bytes": 1}]})");
  const Findings findings = check_profiles(site(), cluster);
  EXPECT_THAT(levels(findings), ElementsAre(kWarning, kOk, kWarning)) << to_text(findings);
  EXPECT_EQ(findings[1].text, "1 model of cpu");
  write(dir + "/profiles/broken.json", "{");
  EXPECT_EQ(check_profiles(site(), cluster)[0].level, kProblem);
}

// BIG-80 is a GPU, small computes on processors.
TEST_F(SiteFiles, LinksOfGpusAreMeasuredOverNccl) {
  const auto links = [&](const std::string& list) {
    write(dir + "/profiles/network.json", R"({"sailor_network_profile": 1, "links": [)" + list + "]}");
    return check_profiles(site(), cluster).back();
  };
  const std::string nccl = R"({"from": {"gpu_type": "BIG-80"}, "transport": "nccl", "bytes_per_s": 2e11})",
                    sockets = R"({"transport": "sockets", "bytes_per_s": 1e9})";
  EXPECT_EQ(links(nccl).level, kOk);
  EXPECT_EQ(links(sockets + ", " + nccl).level, kOk);
  EXPECT_EQ(links(sockets).level, kWarning);
  EXPECT_THAT(links(sockets).text,
              HasSubstr("no link between GPUs of BIG-80 was measured over NCCL: they are assumed as in the"));
  EXPECT_THAT(links(sockets).remedy, HasSubstr("sailor probe --on-nodes"));
  EXPECT_EQ(links(R"({"from": {"gpu_type": "small"}, "to": {"gpu_type": "small"}, "transport": "nccl",
                      "bytes_per_s": 2e11})")
                .level,
            kWarning);
  EXPECT_THAT(links(R"({"bytes_per_s": 1e9})").text, HasSubstr("the links of BIG-80 do not say"));
  EXPECT_EQ(
      links(R"({"messages": [{"bytes": 1, "seconds": 1, "samples": 1, "error": 0}], "transport": "nccl"})")
          .level,
      kWarning)
      << "not enough to plan with";
  cluster.nodes.clear();
  add("n3", "gpu:small:2");
  EXPECT_EQ(links(sockets).level, kOk) << "ranks on processors use sockets";
}

}  // namespace
}  // namespace sailor
