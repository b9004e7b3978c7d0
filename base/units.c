/* SPDX-License-Identifier: MIT */

#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* The largest value that any unit may yield: keeps sums far from overflow. */
#define UNITS_MAX (UINT64_MAX / 1024)

/* In nanoseconds, and on any clock, still an int64_t: a hundred years. */
#define DURATION_MS_MAX (UINT64_C(36525) * 24 * 3600 * 1000)

/*
 * Digits, an optional fraction of at most three digits, a unit of the table.
 * Fixed point, because a double would make the locale and rounding matter.
 */
static int
parse(const char *text, const struct unit *units, uint64_t *ret_value)
{
	uint64_t whole = 0, thousandths = 0, scale = 100;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		if (whole > UNITS_MAX / 10)
			return -EINVAL;
		whole = 10 * whole + (uint64_t)(*text - '0');
	}
	if (*text == '.') {
		if (!isdigit((unsigned char)*++text))
			return -EINVAL;
		for (; isdigit((unsigned char)*text); text++, scale /= 10)
			thousandths += scale * (uint64_t)(*text - '0');
	}
	for (; units->name; units++) {
		if (strcmp(text, units->name) != 0)
			continue;
		if (whole > UNITS_MAX / units->factor)
			return -EINVAL;
		*ret_value = whole * units->factor +
			     thousandths * units->factor / 1000;
		return 0;
	}
	return -EINVAL;
}

int
units_duration_ms(const char *text, uint64_t *ret_ms)
{
	static const struct unit units[] = {
		{ "ms", 1 },	{ "s", 1000 },	  { "", 1000 },
		{ "m", 60000 }, { "h", 3600000 }, { "d", 86400000 },
		{ NULL, 0 },
	};

	uint64_t ms;
	int r = parse(text, units, &ms);

	if (r < 0 || ms > DURATION_MS_MAX)
		return -EINVAL;
	*ret_ms = ms;
	return 0;
}

int
units_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "K", UINT64_C(1) << 10 },
		{ "M", UINT64_C(1) << 20 },
		{ "G", UINT64_C(1) << 30 },
		{ "T", UINT64_C(1) << 40 },
		{ NULL, 0 },
	};

	return parse(text, units, ret_bytes);
}

int
units_number(const char *text, uint64_t *ret_number)
{
	static const struct unit units[] = { { "", 1 }, { NULL, 0 } };

	if (strchr(text, '.'))
		return -EINVAL;
	return parse(text, units, ret_number);
}

int
units_id(char letter, const char *text, uint64_t *ret_id)
{
	const char *digits = *text == letter ? text + 1 : text;
	char *end;

	if (*digits < '1' || *digits > '9' || strlen(digits) > 18)
		return -EINVAL;
	*ret_id = strtoull(digits, &end, 10);
	return *end == '\0' ? 0 : -EINVAL;
}
