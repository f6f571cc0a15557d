#!/usr/bin/env python3
"""The crash walk: create, update, domain change, scale and delete of an app, create and delete of a CloudSpace; for every k the
server dies right after its k-th effect on the outside, or meets an error there. Afterwards the end state must be right.

KUBEOPERA_WALK_SEED repeats a sample; `walk_test.py --step STAGE KIND:NUMBER:FAULT` runs one step and shows its effects."""
import collections
import concurrent.futures
import copy
import os
import random
import sys
import threading
import time
import unittest

import harness
import walk

SEED = int(os.environ.get("KUBEOPERA_WALK_SEED") or random.SystemRandom().randrange(1 << 30))

chance = random.Random(SEED)


class Templates:
    """Folders to start from, made once."""

    def __init__(self):
        self.server = walk.Walker()
        self.models = {"": walk.Model()}
        try:
            self.make()
        except BaseException:
            self.server.close()
            raise

    def make(self):
        w, model = self.server, walk.Model()
        w.start()
        walk.settle(w, model)
        self.keep("base", model)
        walk.add_space(w.start(), model)
        walk.settle(w, model)
        self.keep("space", model)
        walk.create(w.start(), model)
        walk.settle(w, model)
        self.keep("app", model)

    def keep(self, name, model):
        self.server.keep(name)
        self.models[name] = copy.deepcopy(model)

    def step(self, stage, plan=""):
        """One stage with one death or error in it. Returns whether the plan's effect was reached."""
        template, act = {**walk.STAGES, **walk.GIVING_UP}[stage]
        w, model = self.server, copy.deepcopy(self.models[template])
        w.restore(template)
        w.refusals = 0
        try:
            w.start(plan)
            act(w, model)
            walk.settle(w, model)
            if model.apps and (harness.LONG or chance.random() < 0.2):  # what lived through it can be deleted
                walk.delete(w, model)
                walk.settle(w, model)
            w.died()
        except AssertionError as e:
            told = f"stage {stage}, plan {plan or 'none'}: {e}\neffects:\n" + "\n".join(w.effects()[-40:]) + w.last_words()
            print(told, file=sys.stderr)  # at once: a walk may take an hour
            raise AssertionError(told) from e
        return w.reached()


templates: Templates


def setUpModule():
    global templates
    templates = Templates()


def tearDownModule():
    templates.server.close()


def undisturbed(stage):
    """The stage's effects and how many of them belong to the start of the process."""
    template, act = {**walk.STAGES, **walk.GIVING_UP}[stage]
    w, model = templates.server, copy.deepcopy(templates.models[template])
    w.restore(template)
    w.start()
    w.is_calm(0.1)
    first = 0 if stage in ("start", "restart") else len(w.effects())
    act(w, model)
    walk.settle(w, model)
    return w.effects(), first


# Their effects are those of an update, so that a sample of them does.
ALIKE = ("domain", "scale")


class Kill(unittest.TestCase):
    """kill -9 after every effect."""

    def test_every_effect(self):
        walked, missed, begun = 0, 0, time.monotonic()
        for stage in walk.STAGES:
            effects, first = undisturbed(stage)
            places = range(first + 1, len(effects) + 1)
            if stage in ALIKE and not harness.LONG:
                places = chance.sample(places, min(4, len(places)))
            for k in places:
                with self.subTest(stage=stage, k=k, effect=effects[k - 1], seed=SEED):
                    reached = templates.step(stage, f"any:{k}:kill")
                    walked, missed = walked + reached, missed + (not reached)
        harness.report("crash walk", f"killed after each of {walked} effects of {len(walk.STAGES)} stages "
                                     f"({missed} more did not come again), {time.monotonic() - begun:.0f} s (seed {SEED})")

    def test_a_client_that_gives_up(self):
        """Whatever a create had done when it died goes away, unless the app is there."""
        effects, first = undisturbed("create")
        last = next(i for i, line in enumerate(effects, 1) if "with held as" in line)
        for k in range(first + 1, last + 1):
            with self.subTest(k=k, effect=effects[k - 1]):
                templates.step("create once", f"any:{k}:kill")
        harness.report("crash walk", f"a create that nobody repeats, killed after each of its {last - first} effects")

    def test_a_refused_create_changes_nothing(self):
        w, model = templates.server, copy.deepcopy(templates.models["app"])
        w.restore("app")
        w.start()
        body = {**walk.request_of(model, "web"), "env": [{"name": "TOKEN", "secret": "another"}]}
        walk.expect(w.ask_api("POST", "/api/v1/apps", body, walk.key()), 409)
        walk.settle(w, model)

    def test_many_deletes_at_once(self):
        """One deletion, one event, however many ask."""
        w, model = templates.server, copy.deepcopy(templates.models["app"])
        w.restore("app")
        w.start()
        app, space = walk.only_app(model), next(iter(model.spaces))
        for path, forget in ((f"/api/v1/apps/{app}", walk.delete), (f"/api/v1/cloudspaces/{space}", walk.remove_space)):
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                for reply in pool.map(lambda _: w.call("DELETE", path), range(16)):
                    walk.expect(reply, 202, 404)
            forget(w, model)
            walk.settle(w, model)


# What can be in the place of an effect, or follow it.
FAULTS = {"sql": ["cut_before", "cut_after"],
          "kube": ["conflict", "forbid", "throttle", "error_before", "error_after", "timeout_before", "timeout_after", "cut_before", "cut_after"],
          "pack": ["full", "error_after"],
          "push": ["refuse", "conflict", "timeout_before", "timeout_after", "cut_before", "cut_after"]}


class Errors(unittest.TestCase):
    """An error in place of an effect, or after it with the answer lost; the process lives on."""

    def test_errors_at_effects(self):
        steps = []
        for stage in [*walk.STAGES, *walk.GIVING_UP]:
            effects, first = undisturbed(stage)
            seen = collections.Counter()
            for i, line in enumerate(effects):
                kind = line.split(" ")[1]
                seen[kind] += 1
                steps += [(stage, kind, seen[kind], fault) for fault in FAULTS[kind] if i >= first]
        if not harness.LONG:
            random.Random(SEED).shuffle(steps)
            # Every fault of every kind once, and a few more.
            once = {(kind, fault): step for step in steps for kind, fault in [(step[1], step[3])]}.values()
            steps = list(once) + [s for s in steps if s not in once][:8]
        walked, tried_again, begun = 0, 0, time.monotonic()
        for stage, kind, number, fault in steps:
            with self.subTest(stage=stage, kind=kind, number=number, fault=fault, seed=SEED):
                walked += templates.step(stage, f"{kind}:{number}:{fault}")
                tried_again += templates.server.refusals
        harness.report("crash walk", f"an error at {walked} of {len(steps)} chosen effects, the client asked again {tried_again} times, "
                                     f"{time.monotonic() - begun:.0f} s (seed {SEED})")

    def test_objects_in_a_store_of_their_own(self):
        """The same where the fleet repository is another place than the committer's objects: packs travel with the push."""
        w = templates.server
        w.environment = {"KUBEOPERA_WALK_STORE": "apart"}
        try:
            effects, _ = undisturbed("update")
            seen, kills, errors = collections.Counter(), [], []
            for i, line in enumerate(effects, 1):
                kind = line.split(" ")[1]
                seen[kind] += 1
                if kind in ("pack", "push"):
                    kills.append(f"any:{i}:kill")
                    errors += [f"{kind}:{seen[kind]}:{fault}" for fault in FAULTS[kind]]
            self.assertEqual(seen["push"], 1)
            self.assertGreaterEqual(seen["pack"], 2)  # the commit's, and the bookmark
            plans = kills + (errors if harness.LONG else chance.sample(errors, 4))
            reached = 0
            for plan in plans:
                with self.subTest(plan=plan, seed=SEED):
                    reached += templates.step("update", plan)
            harness.report("crash walk", f"{reached} kills and errors at packs and pushes of a store apart from its remote (seed {SEED})")
        finally:
            w.environment = {}

    def test_connections_cut_by_the_database(self):
        """PostgreSQL ends every connection, again and again, while a script runs."""
        w, model = templates.server, copy.deepcopy(templates.models["space"])
        w.restore("space")
        w.start()
        stop, cuts = threading.Event(), 0

        def cut():
            nonlocal cuts
            while not stop.wait(0.01):
                cuts += int(w.sql("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'kubeopera'"))

        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            app = walk.create(w, model)
            for version in range(2, 40):
                walk.put_config(w, model, app, image=f"ghcr.io/acme/web:{version}.0")
                if cuts >= 12:
                    break
        finally:
            stop.set()
            cutter.join()
        model.commits_may_lack = True  # revisions that followed at once
        walk.settle(w, model)
        walk.delete(w, model)
        walk.settle(w, model)
        self.assertGreater(cuts, 0)
        harness.report("crash walk", f"{cuts} database connections cut in the middle of a script")


def one_step(stage, plan):
    setUpModule()
    try:
        templates.step(stage)
        print("undisturbed:", *templates.server.effects(), sep="\n  ")
        if plan:
            begun = time.monotonic()
            reached = templates.step(stage, plan)
            print(f"reached: {reached}, {time.monotonic() - begun:.2f} s", *templates.server.effects(), sep="\n  ")
    finally:
        tearDownModule()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        one_step(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
    else:
        harness.main()
