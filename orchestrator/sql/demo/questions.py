"""Sixty questions of the demo shop with gold SQL, from easy to hard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """One question; its answer on the demo's rows is checked by a test."""

    difficulty: str
    """`easy`, `medium` or `hard`."""
    text: str
    gold: str
    evidence: str = ""


QUESTIONS = (
    # counts
    Asked("easy", "How many customers are there?", "SELECT count(*) FROM customers"),
    Asked("easy", "How many products are discontinued?", "SELECT count(*) FROM products WHERE discontinued = 1"),
    Asked("easy", "How many customers live in Oslo?", "SELECT count(*) FROM customers WHERE city = 'Oslo'"),
    Asked("easy", "How many orders were cancelled?", "SELECT count(*) FROM orders WHERE status = 'cancelled'"),
    Asked(
        "easy",
        "How many customers have the loyalty level gold?",
        """SELECT count(*) FROM customers WHERE "Loyalty Level" = 'gold'""",
    ),
    Asked(
        "easy", "How many different countries do suppliers come from?", "SELECT count(DISTINCT country) FROM suppliers"
    ),
    Asked("easy", "How many reviews have five stars?", "SELECT count(*) FROM reviews WHERE stars = 5"),
    Asked(
        "medium",
        "How many reviews have no text?",
        "SELECT count(*) FROM reviews WHERE body IS NULL",
        "text refers to body",
    ),
    Asked(
        "easy",
        "How many orders were placed with the coupon SPRING10?",
        "SELECT count(*) FROM orders WHERE coupon = 'SPRING10'",
    ),
    # lists and filters
    Asked("easy", "List the names of all suppliers.", "SELECT name FROM suppliers"),
    Asked("easy", "What are the names and prices of all products?", "SELECT name, price FROM products"),
    Asked("easy", "Which suppliers are from Norway?", "SELECT name FROM suppliers WHERE country = 'Norway'"),
    Asked("easy", "Which products cost more than 50?", "SELECT name FROM products WHERE price > 50"),
    Asked("easy", "List the different carriers.", "SELECT DISTINCT carrier FROM shipments"),
    Asked(
        "easy",
        "Show the names of products that weigh between 500 and 1000 grams.",
        "SELECT name FROM products WHERE weight_grams BETWEEN 500 AND 1000",
    ),
    Asked("easy", "What is the role of Lea Brandt?", "SELECT role FROM staff WHERE name = 'Lea Brandt'"),
    Asked("easy", "What is the price of the Chef's Knife?", "SELECT price FROM products WHERE name = 'Chef''s Knife'"),
    Asked(
        "easy",
        'What is the price of the product named Baking Tin 9"?',
        """SELECT price FROM products WHERE name = 'Baking Tin 9"'""",
    ),
    Asked(
        "medium",
        "List the first and last names of customers whose phone number is unknown.",
        "SELECT first_name, last_name FROM customers WHERE phone IS NULL",
    ),
    Asked("easy", "List all product names in alphabetical order.", "SELECT name FROM products ORDER BY name"),
    Asked("medium", "Which product names contain the word Bowl?", "SELECT name FROM products WHERE name LIKE '%Bowl%'"),
    Asked(
        "medium",
        "In which city is the warehouse East?",
        "SELECT city FROM warehouses WHERE name = 'East'",
    ),
    Asked(
        "medium",
        "Which warehouse is in Gdansk?",
        "SELECT name FROM warehouses WHERE city = 'Gdansk '",
        "cities of warehouses may be stored with blanks around them",
    ),
    Asked(
        "medium",
        "Give the names of all products on the wish lists.",
        "SELECT DISTINCT p.name FROM wishes AS w JOIN products AS p ON p.product_id = w.product_id",
        "wish lists refer to wishes; nobody has made one yet",
    ),
    # superlatives and aggregates
    Asked("easy", "What is the average price of all products?", "SELECT avg(price) FROM products"),
    Asked("easy", "What are the lowest and the highest price?", "SELECT min(price), max(price) FROM products"),
    Asked(
        "medium",
        "What is the name of the most expensive product?",
        "SELECT name FROM products ORDER BY price DESC LIMIT 1",
    ),
    Asked(
        "medium",
        "Which product is the heaviest?",
        "SELECT name FROM products WHERE weight_grams = (SELECT max(weight_grams) FROM products)",
    ),
    Asked(
        "medium",
        "What are the names of the three cheapest products?",
        "SELECT name FROM products ORDER BY price LIMIT 3",
    ),
    Asked(
        "medium",
        "How many customers have an email address at post.example?",
        "SELECT count(*) FROM customers WHERE email_domain = 'post.example'",
    ),
    Asked(
        "medium",
        "What is the price with tax of the Wok?",
        "SELECT price_with_tax FROM products WHERE name = 'Wok'",
    ),
    # dates
    Asked(
        "medium",
        "How many orders were placed in 2024?",
        "SELECT count(*) FROM orders WHERE strftime('%Y', ordered_at) = '2024'",
    ),
    Asked(
        "medium",
        "How many orders were placed in each month of 2023?",
        "SELECT strftime('%m', ordered_at), count(*) FROM orders WHERE ordered_at LIKE '2023%' GROUP BY 1",
    ),
    Asked(
        "hard",
        "How many days did the slowest delivery take?",
        "SELECT max(julianday(delivered_on) - julianday(shipped_on)) FROM shipments",
        "how long a delivery takes refers to the days from shipped_on to delivered_on",
    ),
    Asked(
        "medium",
        "Which products were added after 2024-06-30?",
        "SELECT name FROM products WHERE added_on > '2024-06-30'",
    ),
    # grouping
    Asked("medium", "How many customers live in each city?", "SELECT city, count(*) FROM customers GROUP BY city"),
    Asked(
        "medium", "How many orders are there for each status?", "SELECT status, count(*) FROM orders GROUP BY status"
    ),
    Asked(
        "medium",
        "Which cities have more than seven customers?",
        "SELECT city FROM customers GROUP BY city HAVING count(*) > 7",
    ),
    Asked(
        "medium",
        "What is the email address of the supplier Papierhaus?",
        "SELECT email FROM suppliers WHERE name = 'Papierhaus'",
    ),
    Asked(
        "medium",
        "How many customers are there for each loyalty level, leaving out those without one?",
        'SELECT "Loyalty Level", count(*) FROM customers WHERE "Loyalty Level" IS NOT NULL GROUP BY "Loyalty Level"',
    ),
    Asked(
        "hard",
        "Which reason for a return is the most frequent one?",
        'SELECT Reason FROM "Product Returns" WHERE Reason IS NOT NULL GROUP BY Reason ORDER BY count(*) DESC LIMIT 1',
    ),
    # joins
    Asked(
        "medium",
        "List the names of products in the category Puzzles.",
        "SELECT p.name FROM products AS p JOIN categories AS c ON c.category_id = p.category_id "
        "WHERE c.name = 'Puzzles'",
    ),
    Asked(
        "medium",
        "Show each product's name with the name of its supplier.",
        "SELECT p.name, s.name FROM products AS p JOIN suppliers AS s ON s.supplier_id = p.supplier_id",
    ),
    Asked(
        "medium",
        "How many products does each supplier have? Give the supplier's name and the number.",
        "SELECT s.name, count(*) FROM suppliers AS s JOIN products AS p ON p.supplier_id = s.supplier_id "
        "GROUP BY s.supplier_id",
    ),
    Asked(
        "hard",
        "Which categories are part of Kitchen?",
        "SELECT c.name FROM categories AS c JOIN categories AS p ON p.category_id = c.parent_id "
        "WHERE p.name = 'Kitchen'",
    ),
    Asked(
        "hard",
        "What are the names of products that customers from Poland have ordered?",
        "SELECT DISTINCT p.name FROM products AS p JOIN order_items AS i ON i.product_id = p.product_id "
        'JOIN orders AS o ON o.order_id = i."order" JOIN customers AS c ON c.customer_id = o.customer_id '
        "WHERE c.country = 'Poland'",
    ),
    Asked(
        "hard",
        "How many units of each product in the category Novels were sold? Give names and units.",
        "SELECT p.name, sum(i.quantity) FROM products AS p JOIN categories AS c ON c.category_id = p.category_id "
        "JOIN order_items AS i ON i.product_id = p.product_id WHERE c.name = 'Novels' GROUP BY p.product_id",
    ),
    Asked(
        "hard",
        "Which customer has placed the most orders? Give first and last name.",
        "SELECT c.first_name, c.last_name FROM customers AS c JOIN orders AS o ON o.customer_id = c.customer_id "
        "GROUP BY c.customer_id ORDER BY count(*) DESC LIMIT 1",
    ),
    Asked(
        "medium",
        "What is the total amount paid by card?",
        "SELECT sum(amount) FROM payments WHERE method = 'card'",
    ),
    Asked(
        "medium",
        "What is the total of the largest order?",
        "SELECT max(total) FROM order_totals",
    ),
    Asked(
        "hard",
        "How many units of the Bonsai are in stock in the warehouse North?",
        "SELECT s.quantity FROM stock AS s JOIN products AS p ON p.product_id = s.product_id "
        "JOIN warehouses AS w ON w.warehouse_id = s.warehouse_id WHERE p.name = 'Bonsai' AND w.name = 'North'",
    ),
    # what is not there
    Asked(
        "hard",
        "Which suppliers supply no product?",
        "SELECT name FROM suppliers WHERE supplier_id NOT IN (SELECT supplier_id FROM products)",
    ),
    Asked(
        "hard",
        "Which products have never been ordered?",
        "SELECT p.name FROM products AS p LEFT JOIN order_items AS i ON i.product_id = p.product_id "
        "WHERE i.line IS NULL",
    ),
    Asked(
        "hard",
        "How many customers have never placed an order?",
        "SELECT count(*) FROM customers AS c WHERE NOT EXISTS "
        "(SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id)",
    ),
    # sets and nesting
    Asked(
        "hard",
        "Which cities have both customers and a warehouse?",
        "SELECT city FROM customers INTERSECT SELECT trim(city) FROM warehouses",
        "cities of warehouses may be stored with blanks around them",
    ),
    Asked(
        "hard",
        "Which countries have customers but no supplier?",
        "SELECT country FROM customers EXCEPT SELECT country FROM suppliers",
    ),
    Asked(
        "hard",
        "Which products cost more than the average product?",
        "SELECT name FROM products WHERE price > (SELECT avg(price) FROM products)",
    ),
    Asked(
        "hard",
        "What share of all orders was cancelled, in percent?",
        "SELECT 100.0 * sum(status = 'cancelled') / count(*) FROM orders",
    ),
    Asked(
        "hard",
        "What is the best rated supplier in each country? Give country, name and rating.",
        "SELECT s.country, s.name, s.rating FROM suppliers AS s WHERE s.rating = "
        "(SELECT max(o.rating) FROM suppliers AS o WHERE o.country = s.country)",
    ),
    Asked(
        "hard",
        "Which products cost more than the average of their own category?",
        "SELECT p.name FROM products AS p WHERE p.price > "
        "(SELECT avg(o.price) FROM products AS o WHERE o.category_id = p.category_id)",
    ),
)
