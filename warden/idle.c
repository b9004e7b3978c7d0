/* SPDX-License-Identifier: MIT */

#include "warden/warden_priv.h"

const char *
warden_kind(const struct warden *warden)
{
	if (warden->opt.mountpoint)
		return "mount";
	return warden->opt.standing ? "standing" : "run";
}

static void
on_idle(uv_timer_t *timer)
{
	warden_end(timer->data, "nobody has wanted it for a while");
}

static void
wait_for_somebody(struct warden *warden)
{
	if (warden->opt.idle_ms > 0 && !warden->ending)
		(void)uv_timer_start(&warden->idle_timer, on_idle,
				     warden->opt.idle_ms, 0);
}

int
idle_start(struct warden *warden)
{
	int r = uv_timer_init(&warden->loop, &warden->idle_timer);

	warden->idle_timer.data = warden;
	if (r == 0 && warden->wanted_by == 0)
		wait_for_somebody(warden);
	return r;
}

void
warden_hold(struct warden *warden)
{
	if (warden->wanted_by++ == 0 && warden->idle_timer.data)
		(void)uv_timer_stop(&warden->idle_timer);
}

void
warden_release(struct warden *warden)
{
	if (--warden->wanted_by == 0 && warden->idle_timer.data &&
	    !uv_is_closing((uv_handle_t *)&warden->idle_timer))
		wait_for_somebody(warden);
}
